package inmemory

import (
	"bytes"
	"fmt"
	"strings"
)

// miniredis knows only two sections of INFO, and no replicas. For the rest, the link sends it
// a stand-in: a command that it answers with an error of its own, after hooks and
// authentication, and in turn. The link then replaces that error by the right reply.
//
// The stand-in for INFO is INFO with one argument, which miniredis repeats in its error. So
// the link can tell what was asked for even in the reply to EXEC.
const (
	infoPrefix    = "-section ("
	infoSuffix    = ") is not supported\r\n"
	refusedError  = "-ERR value is not an integer or out of range\r\n"
	inSubscriber  = "-ERR Can't execute 'getrange':" // on a connection with a subscription
	scriptRefused = "Write commands are not allowed in read-only scripts"
	readonlyError = "-READONLY You can't write against a read only replica.\r\n"
)

// sent is a command that the server is executing, and how the link must answer it.
type sent struct {
	command []string
	replica bool
	refused string // the error that the command gets; empty for none
}

// standIn returns the bytes that miniredis reads in place of a command.
func (m *Master) standIn(s sent, raw []byte) []byte {
	name, args := s.command[0], s.command[1:]
	switch {
	case s.refused != "":
		return encode("GETRANGE", "", "", "")
	case name == "INFO" && len(args) == 0:
		return encode(name, "default")
	case name == "INFO" && len(args) > 1:
		return encode(name, strings.Join(args, " "))
	case !s.replica:
		return raw
	case name == "EVAL", name == "EVALSHA":
		return encode(append([]string{name + "_RO"}, args...)...)
	case m.writes(name):
		return encode("GETRANGE", "", "", "") // aborts a transaction, too
	}
	return raw
}

func encode(command ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(command))
	for _, arg := range command {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return b
}

// amend returns the reply that the client gets in place of miniredis's, which is mostly the
// same.
func (e *serverEnd) amend(s sent, reply []byte) []byte {
	switch name := s.command[0]; {
	case s.refused != "" && (string(reply) == refusedError || bytes.HasPrefix(reply, []byte(inSubscriber))):
		return []byte("-" + s.refused + "\r\n")
	case name == "HELLO" && reply[0] != '-':
		e.resp3 = reply[0] == '%'
		if s.replica {
			return bytes.Replace(reply, []byte("role\r\n$6\r\nmaster"), []byte("role\r\n$7\r\nreplica"), 1)
		}
	case name == "INFO":
		return e.informed(reply)
	case name == "EXEC" && reply[0] == '*':
		head, rest, _ := bytes.Cut(reply, []byte("\r\n"))
		whole := append(bytes.Clone(head), "\r\n"...)
		for len(rest) > 0 {
			n := replyLength(rest)
			if n == 0 {
				return reply // not reached: it is complete
			}
			whole = append(whole, scripted(s, e.informed(rest[:n]))...)
			rest = rest[n:]
		}
		return whole
	case !s.replica:
	case name == "EVAL", name == "EVALSHA":
		return scripted(s, reply)
	case string(reply) == refusedError && e.master.writes(name):
		return []byte(readonlyError)
	}
	return reply
}

// scripted returns READONLY for a script of a replica that ended because it tried to write.
func scripted(s sent, reply []byte) []byte {
	if s.replica && reply[0] == '-' && bytes.Contains(reply, []byte(scriptRefused)) {
		return []byte(readonlyError)
	}
	return reply
}

// informed replaces the error of an INFO stand-in by the right reply: a bulk string in RESP2,
// and a verbatim string in RESP3, as in Redis.
func (e *serverEnd) informed(reply []byte) []byte {
	names, ours := strings.CutPrefix(string(reply), infoPrefix)
	names, whole := strings.CutSuffix(names, infoSuffix)
	if !ours || !whole {
		return reply
	}
	text := e.master.info(strings.Fields(names))
	switch {
	case text == "":
		return reply
	case e.resp3:
		return fmt.Appendf(nil, "=%d\r\ntxt:%s\r\n", len("txt:")+len(text), text)
	}
	return fmt.Appendf(nil, "$%d\r\n%s\r\n", len(text), text)
}
