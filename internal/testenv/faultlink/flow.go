package faultlink

import (
	"io"
	"os"
	"sync"
	"time"
)

// packet is some bytes, or the end, on its way in one direction of a connection.
type packet struct {
	data []byte
	due  time.Time // when it arrives; zero: at once
	end  bool
}

// flow is one direction of a connection, first in, first out. Like a socket's buffers for a
// lock client, it takes any amount, so that a slow receiver never blocks a sender.
type flow struct {
	path      *Path // may hold packets
	direction Direction

	mu      sync.Mutex
	packets []packet
	over    bool          // nothing comes after these packets
	changed chan struct{} // room for one signal that packets has changed

	closed chan struct{}
	once   sync.Once
}

func newFlow(p *Path, d Direction) *flow {
	return &flow{path: p, direction: d, changed: make(chan struct{}, 1), closed: make(chan struct{})}
}

// send adds a packet to the flow and never blocks.
func (f *flow) send(p packet) {
	f.change(func() {
		if !f.over {
			f.packets = append(f.packets, p)
		}
	})
}

// end replaces everything under way by the end of the connection.
func (f *flow) end() {
	f.change(func() { f.packets, f.over = []packet{{end: true}}, true })
}

func (f *flow) change(by func()) {
	f.mu.Lock()
	by()
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default: // the signal that is there covers this change too
	}
}

// close discards everything under way.
func (f *flow) close() { f.once.Do(func() { close(f.closed) }) }

// receive returns the next bytes once they are due. It returns io.EOF at the end of the flow or
// after close, and os.ErrDeadlineExceeded if expired is closed first; then nothing is lost.
// Only one goroutine may receive at a time.
func (f *flow) receive(expired <-chan struct{}) ([]byte, error) {
	for {
		select {
		case <-f.closed:
			return nil, io.EOF
		case <-expired:
			return nil, os.ErrDeadlineExceeded
		default:
		}
		var arrival <-chan time.Time
		var passage <-chan struct{}
		stop := func() bool { return true }
		if next, ok := f.peek(); ok {
			if left := time.Until(next.due); left > 0 {
				timer := time.NewTimer(left)
				arrival, stop = timer.C, timer.Stop
			} else {
				passage = f.path.Gate(f.direction)
			}
		}
		select {
		case <-passage:
			next := f.take()
			if !next.end {
				return next.data, nil
			}
			f.close()
		case <-arrival:
		case <-f.changed:
		case <-f.closed:
		case <-expired:
		}
		stop()
	}
}

// peek returns the first packet and leaves it in place.
func (f *flow) peek() (packet, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.packets) == 0 {
		return packet{}, false
	}
	return f.packets[0], true
}

// take removes the first packet. There is one, because only end removes others.
func (f *flow) take() packet {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.packets[0]
	f.packets[0] = packet{} // free its bytes
	f.packets = f.packets[1:]
	return next
}

// hasEnded reports whether the end of the connection is next and has arrived.
func (f *flow) hasEnded() bool {
	select {
	case <-f.closed:
		return true
	default:
	}
	if next, ok := f.peek(); !ok || !next.end || time.Until(next.due) > 0 {
		return false
	}
	select {
	case <-f.path.Gate(f.direction):
		return true
	default:
		return false
	}
}
