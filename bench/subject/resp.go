package subject

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/slot"
)

// Replies, byte for byte.
const (
	replyOK      = "+OK\r\n"
	replyDeleted = ":1\r\n"
	replyNil     = "$-1\r\n" // SET NX found the key
)

// boundValue is the value that the bounds store. It is as long as a lock's value. It is always
// the same, because no other client competes for these keys.
const boundValue = "0123456789abcdef0123456789abcdef"

func appendCommand(b []byte, args ...string) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

func appendSet(b []byte, key string) []byte {
	return appendCommand(b, "SET", key, boundValue, "NX", "PX", strconv.FormatInt(TTL.Milliseconds(), 10))
}

func appendRelease(b []byte, sha, key string) []byte {
	return appendCommand(b, "EVALSHA", sha, "2", key, slot.Sibling(slot.FlagPrefix, key), boundValue)
}

// dialAll connects to every master and loads the release script there. After an error no
// connection is left open.
func dialAll(addrs []string) (conns []net.Conn, sha string, err error) {
	defer func() {
		if err != nil {
			closeAll(conns)
			conns = nil
		}
	}()
	for _, addr := range addrs {
		c, err := net.DialTimeout("tcp", addr, 5*time.Second)
		if err != nil {
			return conns, "", err
		}
		conns = append(conns, c)
		if sha, err = load(c); err != nil {
			return conns, "", fmt.Errorf("%s: SCRIPT LOAD: %w", addr, err)
		}
	}
	return conns, sha, nil
}

// load loads the library's own release script, so that the servers do the same work for the bounds
// as for the library, and returns its hash.
func load(c net.Conn) (string, error) {
	if _, err := c.Write(appendCommand(nil, "SCRIPT", "LOAD", script.Release.Text)); err != nil {
		return "", err
	}
	r := bufio.NewReader(c)
	head, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	if head != "$40\r\n" {
		return "", fmt.Errorf("unexpected reply %q", head)
	}
	sha, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(sha, "\r\n"), nil
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		_ = c.Close()
	}
}
