// Package faultlink carries connections between clients and servers, and can hold back, delay,
// lose, tear and break their traffic. An end of a connection is a socket or in-process, so that
// connections also work in virtual time (testing/synctest).
package faultlink

import (
	"sync"
	"time"
)

// Path is the network that connections cross. Its methods are safe for concurrent use. They
// also affect open connections, for what has not arrived yet.
type Path struct {
	Conns Set // the open connections

	mu    sync.Mutex       // never held while anything blocks
	gates [2]chan struct{} // by direction: closed unless Hold holds it
	shape func(Direction) (delay time.Duration, lost bool)
	tear  func(d Direction, bytes int) (arrive int)
}

// Direction is one of the two directions of a path.
type Direction uint8

const (
	ToServer Direction = iota
	ToClient
)

// NewPath returns a path without faults.
func NewPath() *Path {
	p := &Path{gates: [2]chan struct{}{make(chan struct{}), make(chan struct{})}}
	close(p.gates[ToServer])
	close(p.gates[ToClient])
	return p
}

// Hold partitions the path in either or both directions. Everything that is sent waits, even
// the end of a connection. [Path.Heal] lets it arrive late, like TCP's
// retransmission.
func (p *Path) Hold(toServer, toClient bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for d, held := range [2]bool{ToServer: toServer, ToClient: toClient} {
		select {
		case <-p.gates[d]:
			if held {
				p.gates[d] = make(chan struct{})
			}
		default:
			if !held {
				close(p.gates[d])
			}
		}
	}
}

// Heal ends Hold.
func (p *Path) Heal() { p.Hold(false, false) }

// Gate returns a channel that is closed unless Hold holds direction d.
func (p *Path) Gate(d Direction) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gates[d]
}

// Break cuts the path's connections, with everything under way on them. An in-process client
// notices when it next reads. New connections are not affected.
func (p *Path) Break() {
	for _, c := range p.Conns.All() {
		c.Cut()
	}
}

// Shape makes the path call f for everything sent from now on: how long it takes, and whether
// it is lost, which also cuts its connection. A lost request does not reach the server; the
// command of a lost reply has been executed. f is called once for each request and once for
// each reply, in their order on a connection. With nil, the path takes no time.
func (p *Path) Shape(f func(Direction) (delay time.Duration, lost bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shape = f
}

// Draw calls the function of Shape.
func (p *Path) Draw(d Direction) (delay time.Duration, lost bool) {
	p.mu.Lock()
	f := p.shape
	p.mu.Unlock()
	if f == nil {
		return 0, false
	}
	return f(d)
}

// Tear makes the path call f for everything sent from now on that [Path.Shape] does not lose.
// f returns how many of the bytes arrive, at least 0. If some do not, they are lost, and the
// connection is cut after those that do. Like Shape's f, it is called once for each request
// and once for each reply, in their order on a connection. nil ends the tearing.
//
// Of a torn request, a Redis server executes the commands that arrived whole, in order, but not
// the one that was cut; the replies arrive before the end of the connection. If a reply is
// torn, its command and the later ones of its request have been executed. The client gets the
// earlier replies and the beginning of this one before the end.
func (p *Path) Tear(f func(d Direction, bytes int) (arrive int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tear = f
}

// arrives returns how many of the bytes arrive, according to Tear.
func (p *Path) arrives(d Direction, bytes int) int {
	p.mu.Lock()
	f := p.tear
	p.mu.Unlock()
	if f == nil {
		return bytes
	}
	return min(f(d, bytes), bytes)
}
