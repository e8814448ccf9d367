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
// It is filled anew for each use, all of its arguments and its reply, as the hooks of
// a caller's client may have changed them. The value is an argument by pointer, which
// go-redis writes as the string it is, and which no hook prints.
type wireCmd struct {
	redis.Cmder
	text   *redis.ZeroCopyStringCmd // of a SET
	number *redis.Cmd               // of a script; any type, so that a string is not taken for a number
	args   []any                    // go-redis' own

	verb, script any // a script by its hash, or whole
	keys         any // int: how many
	value        string

	buf [8]byte // room for the text
}

func (*wireCmd) NoRetry() bool { return true }

func newSet() *wireCmd {
	c := &wireCmd{verb: "set", args: make([]any, 6)}
	c.text = redis.NewZeroCopyStringCmd(context.Background(), c.buf[:], c.args...)
	c.Cmder = c.text
	return c
}

// newScriptCall makes a call of a script with so many keys and arguments.
func newScriptCall(verb, script string, keys, arguments int) *wireCmd {
	c := &wireCmd{verb: verb, script: script, keys: keys, args: make([]any, 3+keys+arguments)}
	c.number = redis.NewCmd(context.Background(), c.args...)
	c.Cmder = c.number
	return c
}

// fill makes it c's, with no reply.
func (w *wireCmd) fill(c *command) {
	w.value = c.value
	w.SetErr(nil)
	a := w.args
	a[0] = w.verb
	if w.text != nil {
		w.text.SetVal(0)
		a[1], a[2], a[3], a[4], a[5] = c.key, &w.value, "nx", "px", c.ttl
		return
	}
	w.number.SetVal(nil)
	a[1], a[2], a[3] = w.script, w.keys, c.key
	a = a[4:]
	if w.keys != 1 {
		a[0], a = c.fence.key, a[1:]
	}
	a[0] = &w.value
	if len(a) > 1 {
		a[1] = c.ttl
	}
	if len(a) > 2 {
		a[2], a[3] = c.fence.token, c.fence.retention
	}
	if len(a) > 4 {
		a[4] = "0"
		if c.kind == kindTopUp {
			a[4] = "1"
		}
	}
}

// clear forgets whom it was filled for.
func (w *wireCmd) clear() {
	w.value = ""
	clear(w.args)
}

// wire is the commands of one connection, kept for its next batches: made anew
// for each operation they would be most of its garbage. They belong to the
// goroutine that carries the batch.
type wire struct {
	cmds []*wireCmd    // those of the batch
	out  []redis.Cmder // the same for go-redis, behind what asks who the server is

	sets, releases, extends, proposals shelf
	loaded                             map[string]bool // hashes of the scripts that the server was given
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

// encode adds the batch to cmds and out.
func (w *wire) encode(batch []*call) {
	for _, call := range batch {
		c := call.Op()
		cmd := w.command(c)
		cmd.fill(c)
		w.cmds = append(w.cmds, cmd)
		w.out = append(w.out, cmd)
	}
}

// reset forgets the batch, its keys and its values.
func (w *wire) reset() {
	for _, cmd := range w.cmds {
		cmd.clear()
	}
	clear(w.cmds)
	clear(w.out)
	w.cmds, w.out = w.cmds[:0], w.out[:0]
	w.sets.used, w.releases.used, w.extends.used, w.proposals.used = 0, 0, 0, 0
}

// command is one for c. A Redlock has a fence for each of its locks or for none, so
// the calls on a shelf are all of one shape.
func (w *wire) command(c *command) *wireCmd {
	switch {
	case c.kind == kindExtend && c.fence != nil:
		return w.script(&w.extends, extendScript, 2, 4)
	case c.kind == kindExtend:
		return w.script(&w.extends, extendScript, 1, 2)
	case c.kind == kindRelease || c.kind == kindCleanUp:
		return w.script(&w.releases, releaseScript, 1, 1)
	case c.fence != nil:
		return w.script(&w.proposals, proposeScript, 2, 5)
	default:
		return w.sets.take(newSet)
	}
}

// script sends a script whole for the first time, as the server may not know it,
// and by its hash from then on. To learn that from the server's error would cost a
// round trip, during which later commands of the batch overtake.
func (w *wire) script(from *shelf, s script, keys, arguments int) *wireCmd {
	if !w.loaded[s.sha1] {
		if w.loaded == nil {
			w.loaded = map[string]bool{}
		}
		w.loaded[s.sha1] = true
		return newScriptCall("eval", s.text, keys, arguments)
	}
	return from.take(func() *wireCmd { return newScriptCall("evalsha", s.sha1, keys, arguments) })
}
