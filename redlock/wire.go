package redlock

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// wireCmd is a command as go-redis takes it. It is sent at most once: go-redis
// sends a command again after a lost connection; a SET NX that was executed the
// first time then finds our own key and takes it for somebody else's
// (go-redis#2985).
//
// Its arguments point at its own fields, so that it can be filled anew. The value
// is therefore not among the arguments that a client's hooks can print.
type wireCmd struct {
	redis.Cmder
	text   *redis.ZeroCopyStringCmd // of a SET
	number *redis.Cmd               // of a script; any type, so that a string is not taken for a number

	key, value string
	ttl        int64

	buf [8]byte // room for the text
}

func (*wireCmd) NoRetry() bool { return true }

func newSet() *wireCmd {
	c := &wireCmd{}
	c.text = redis.NewZeroCopyStringCmd(context.Background(), c.buf[:], "set", &c.key, &c.value, "nx", "px", &c.ttl)
	c.Cmder = c.text
	return c
}

func newScriptCall(verb, script string, withTTL bool) *wireCmd {
	c := &wireCmd{}
	args := []any{verb, script, 1, &c.key, &c.value}
	if withTTL {
		args = append(args, &c.ttl)
	}
	c.number = redis.NewCmd(context.Background(), args...)
	c.Cmder = c.number
	return c
}

// fill makes it c's, with no reply.
func (w *wireCmd) fill(c *command) {
	w.key, w.value, w.ttl = c.key, c.value, c.ttl
	w.SetErr(nil)
	if w.text != nil {
		w.text.SetVal(0)
	} else {
		w.number.SetVal(nil)
	}
}

// wire is the commands of one connection, kept for its next batches: made anew
// for each operation they would be most of its garbage. They belong to the
// goroutine that carries the batch.
type wire struct {
	cmds []*wireCmd    // those of the batch
	out  []redis.Cmder // the same, for go-redis

	sets, releases, extends shelf
	loaded                  map[string]bool // hashes of the scripts that the server was given
}

// shelf holds commands of one kind; the first ones are in use.
type shelf struct {
	made []*wireCmd
	used int
}

func (s *shelf) take(make func() *wireCmd) *wireCmd {
	if s.used == len(s.made) {
		s.made = append(s.made, make())
	}
	s.used++
	return s.made[s.used-1]
}

// encode has the batch in cmds and out.
func (w *wire) encode(batch []*call) {
	w.reset()
	for _, call := range batch {
		c := call.Op()
		cmd := w.command(c.kind)
		cmd.fill(c)
		w.cmds = append(w.cmds, cmd)
		w.out = append(w.out, cmd)
	}
}

// reset forgets the batch, its keys and its values.
func (w *wire) reset() {
	for _, cmd := range w.cmds {
		cmd.key, cmd.value = "", ""
	}
	clear(w.cmds)
	clear(w.out)
	w.cmds, w.out = w.cmds[:0], w.out[:0]
	w.sets.used, w.releases.used, w.extends.used = 0, 0, 0
}

func (w *wire) command(k kind) *wireCmd {
	switch k {
	case kindExtend:
		return w.script(&w.extends, extendScript, true)
	case kindRelease, kindCleanUp:
		return w.script(&w.releases, releaseScript, false)
	default:
		return w.sets.take(newSet)
	}
}

// script sends a script whole for the first time, as the server may not know it,
// and by its hash from then on. To learn that from the server's error would cost a
// round trip, during which later commands of the batch overtake.
func (w *wire) script(from *shelf, s script, withTTL bool) *wireCmd {
	if !w.loaded[s.sha1] {
		if w.loaded == nil {
			w.loaded = map[string]bool{}
		}
		w.loaded[s.sha1] = true
		return newScriptCall("eval", s.text, withTTL)
	}
	return from.take(func() *wireCmd { return newScriptCall("evalsha", s.sha1, withTTL) })
}
