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
	filled  chan struct{} // room for one signal that there may be packets
	over    bool          // the end takes the place of the packets
	ended   chan struct{} // closed when over is set
	closed  chan struct{}
	once    sync.Once
}

func newFlow(p *Path, d Direction) *flow {
	return &flow{path: p, direction: d, filled: make(chan struct{}, 1), ended: make(chan struct{}), closed: make(chan struct{})}
}

// send adds a packet to the flow and never blocks.
func (f *flow) send(p packet) {
	f.mu.Lock()
	f.packets = append(f.packets, p)
	f.mu.Unlock()
	select {
	case f.filled <- struct{}{}:
	default: // the signal that is there covers this packet too
	}
}

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
		next, ok := f.peek()
		wait, stop := f.filled, func() bool { return true }
		var arrival <-chan time.Time
		if ok {
			left := time.Until(next.due)
			if next.due.IsZero() || left <= 0 {
				switch {
				case !f.passes(expired):
				case next.end:
					f.close()
				case f.drop():
					return next.data, nil
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
	case <-f.path.Gate(f.direction):
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
	select {
	case <-f.path.Gate(f.direction):
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
