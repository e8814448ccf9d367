package redlocktest

import (
	"io"
	"os"
	"sync"
	"time"
)

// packet is a command, some bytes of replies, or the end, on its way in one direction of a
// link.
type packet struct {
	command
	due time.Time // when it arrives; zero: at once
	end bool
}

// flow is one direction of a link, first in, first out. Like a socket's buffers for a lock
// client, it takes any amount, so that a slow receiver never blocks a sender.
type flow struct {
	path      *Path // the path, which may hold packets; nil for none
	direction Direction

	mu      sync.Mutex
	packets []packet
	filled  chan struct{} // room for one signal that there may be packets
	over    bool          // the end takes the place of the packets
	ended   chan struct{} // closed when over is set
	closed  chan struct{}
	once    sync.Once
}

func newFlow(p *Path, d Direction) *flow {
	return &flow{path: p, direction: d, filled: make(chan struct{}, 1), ended: make(chan struct{}), closed: make(chan struct{})}
}

// send adds packets to the flow and never blocks.
func (f *flow) send(packets ...packet) {
	f.mu.Lock()
	f.packets = append(f.packets, packets...)
	f.mu.Unlock()
	select {
	case f.filled <- struct{}{}:
	default: // the signal that is there covers these packets too
	}
}

// receive returns the next packet once it is due. It returns io.EOF at the end of the flow or
// after close, and os.ErrDeadlineExceeded if expired is closed first; then no packet is lost.
// Only one goroutine may receive at a time.
func (f *flow) receive(expired <-chan struct{}) (packet, error) {
	for {
		select {
		case <-f.closed:
			return packet{}, io.EOF
		case <-expired:
			return packet{}, os.ErrDeadlineExceeded
		default:
		}
		next, ok := f.peek()
		wait, stop := f.filled, func() bool { return true }
		var arrival <-chan time.Time
		if ok {
			left := time.Until(next.due)
			if next.due.IsZero() || left <= 0 {
				if f.path != nil && !f.passes(expired) {
					continue
				}
				if next.end {
					f.close()
					continue
				}
				if f.drop() {
					return next, nil
				}
				continue
			}
			timer := time.NewTimer(left)
			wait, arrival, stop = nil, timer.C, timer.Stop
		}
		select {
		case <-wait:
		case <-arrival:
		case <-f.ended:
		case <-f.closed:
		case <-expired:
		}
		stop()
	}
}

// passes waits while the path is held. It returns false if the wait ended for another reason.
func (f *flow) passes(expired <-chan struct{}) bool {
	select {
	case <-f.path.gate(f.direction):
		return true
	case <-f.closed:
	case <-expired:
	}
	return false
}

// peek returns the first packet and leaves it in place.
func (f *flow) peek() (packet, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return packet{end: true}, true
	}
	if len(f.packets) == 0 {
		return packet{}, false
	}
	return f.packets[0], true
}

// hasEnded reports whether the end of the connection is next and has arrived.
func (f *flow) hasEnded() bool {
	select {
	case <-f.closed:
		return true
	default:
	}
	next, ok := f.peek()
	if !ok || !next.end || time.Until(next.due) > 0 {
		return false
	}
	if f.path == nil {
		return true
	}
	select {
	case <-f.path.gate(f.direction):
		return true
	default:
		return false
	}
}

// drop removes the first packet, unless it has been lost meanwhile.
func (f *flow) drop() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return false
	}
	f.packets[0] = packet{} // free its bytes
	f.packets = f.packets[1:]
	return true
}

// end replaces everything under way by the end of the connection.
func (f *flow) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.over {
		f.over = true
		close(f.ended)
	}
}

// close discards everything under way.
func (f *flow) close() { f.once.Do(func() { close(f.closed) }) }
