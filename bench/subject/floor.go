package subject

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/quorumlock/redlock/bench/result"
)

// floor is the least time that one caller can wait for a majority of masters: one write of
// prepared bytes to each, one read from each, and no lock. It draws no value, and has no
// timer, context, timeout or second connection; a fault of any master ends it. An operation
// returns when a majority has answered it, like a lock's. The answers of the others are read
// while the next operation is under way. Every reply is checked.
//
// The caller's goroutine writes to all masters; a goroutine for each master reads. If a
// goroutine for each master did both, a hand-over to each would come before its write. That
// took about a tenth longer with five masters and with nine.
type floor struct {
	conns        []net.Conn
	sha          string
	set, release request
	need         uint64

	number uint64        // of the request under way; odd ones are SETs
	state  atomic.Uint64 // number<<16 | refusals<<8 | grants
	done   chan error    // the caller's wake-up, one for a request
	reads  sync.WaitGroup
}

var floorSpec = Spec{
	Name:    result.Floor,
	Open:    func(t Target) (Locker, error) { return openFloor(t) },
	Keys:    itself,
	Refused: is(ErrHeld),
}

func openFloor(t Target) (*floor, error) {
	conns, sha, err := dialAll(t.Addrs)
	if err != nil {
		return nil, err
	}
	n := len(conns)
	f := &floor{
		conns: conns,
		sha:   sha,
		need:  uint64(n/2 + 1),
		done:  make(chan error, n+2), // a decision, and the end of each master
	}
	for _, c := range conns {
		f.reads.Go(func() { f.read(c) })
	}
	return f, nil
}

// Caller may be used by one goroutine only, whatever its number.
func (f *floor) Caller() Caller { return f }

// Close waits until the readers have read all replies, so nothing that was sent is left
// behind.
func (f *floor) Close() error {
	for _, c := range f.conns {
		_ = c.(*net.TCPConn).CloseWrite() // the server answers what it has, and closes
	}
	f.reads.Wait()
	closeAll(f.conns)
	return nil
}

func (f *floor) Acquire(_ context.Context, key string) error {
	f.set.prepare(key, func(b []byte) []byte { return appendSet(b, key) })
	f.release.prepare(key, func(b []byte) []byte { return appendRelease(b, f.sha, key) })
	return f.ask(f.set.bytes)
}

// Release may be called only after an Acquire that succeeded, and Acquire only after a
// Release: a refusal ends the floor.
func (f *floor) Release(context.Context) error { return f.ask(f.release.bytes) }

func (f *floor) ask(request []byte) error {
	f.number++
	f.state.Store(f.number << 16)
	for _, c := range f.conns {
		if _, err := c.Write(request); err != nil {
			return err
		}
	}
	return <-f.done
}

// read reads one master's replies, in the order of the requests.
func (f *floor) read(c net.Conn) {
	want := [2]string{replyDeleted, replyOK} // by the lowest bit of the number
	var buf [64]byte
	have := 0
	for number := uint64(1); ; {
		n, err := c.Read(buf[have:])
		if err != nil {
			f.done <- fmt.Errorf("%s: %w", c.RemoteAddr(), err)
			return
		}
		have += n
		used := 0
		for have > used {
			w, rest := want[number&1], buf[used:have]
			vote := uint64(1)
			if number&1 == 1 && rest[0] == replyNil[0] {
				w, vote = replyNil, 1<<8
			}
			if len(rest) < len(w) {
				break
			}
			if string(rest[:len(w)]) != w {
				f.done <- fmt.Errorf("%s: unexpected reply %q", c.RemoteAddr(), rest)
				return
			}
			used += len(w)
			f.count(number, vote)
			number++
		}
		have = copy(buf[:], buf[used:have])
	}
}

// count adds a vote, unless the caller has already returned. The vote that makes the majority
// wakes the caller.
func (f *floor) count(number, vote uint64) {
	for {
		s := f.state.Load()
		if s>>16 != number {
			return
		}
		if !f.state.CompareAndSwap(s, s+vote) {
			continue
		}
		switch grants, refusals := (s+vote)&0xff, (s+vote)>>8&0xff; {
		case vote == 1 && grants == f.need:
			f.done <- nil
		case vote != 1 && refusals == f.need:
			f.done <- ErrHeld
		}
		return
	}
}

// request is a command in RESP. The next key of the same length overwrites its key, which
// takes nanoseconds.
type request struct {
	keys  []int // each position at which the key begins
	size  int   // the key's length
	bytes []byte
}

func (r *request) prepare(key string, encode func([]byte) []byte) {
	if len(key) == r.size {
		for _, at := range r.keys {
			copy(r.bytes[at:], key)
		}
		return
	}
	r.bytes = encode(nil)
	r.keys, r.size = r.keys[:0], len(key)
	for at := 0; ; at += r.size {
		next := bytes.Index(r.bytes[at:], []byte(key))
		if next < 0 {
			return
		}
		at += next
		r.keys = append(r.keys, at)
	}
}
