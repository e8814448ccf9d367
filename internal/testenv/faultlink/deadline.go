package faultlink

import (
	"sync"
	"time"
)

// deadline ends a connection's reads or writes in time. It can be moved while they wait.
type deadline struct {
	mu    sync.Mutex // never held while anything blocks
	timer *time.Timer
	done  chan struct{} // closed once the deadline has passed
}

func newDeadline() *deadline { return &deadline{done: make(chan struct{})} }

// expired returns a channel that is closed when the deadline passes.
func (d *deadline) expired() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done
}

// set moves the deadline to t; the zero time means never.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	// A timer that can no longer be stopped closes the channel that it was made for, so the
	// next deadline needs another.
	if d.timer != nil && !d.timer.Stop() {
		d.done = make(chan struct{})
	}
	d.timer = nil
	select {
	case <-d.done:
		d.done = make(chan struct{})
	default:
	}
	if t.IsZero() {
		return
	}
	done := d.done
	if left := time.Until(t); left > 0 {
		d.timer = time.AfterFunc(left, func() { close(done) })
		return
	}
	close(done)
}
