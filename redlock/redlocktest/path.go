package redlocktest

import (
	"context"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Path is the network between one client and one master. A test can use it to cut off one
// client while others reach the master. Faults of the master itself, such as [Master.Stall] or
// [Master.Delay], apply in addition. Its connections are in-process, in real and in virtual
// time. Its methods are safe for concurrent use.
type Path struct {
	master *Master

	mu       sync.Mutex // never held while anything blocks
	refused  bool
	leads    *Master       // where new connections lead; nil for the path's own master
	requests chan struct{} // closed unless Hold holds what is sent to the master
	replies  chan struct{} // the same for what the master sends
	shape    func(Direction) (delay time.Duration, lost bool)
	torn     func(d Direction, bytes int) (arrive int)
	links    map[*link]struct{}
}

// Direction is one of the two directions of a path.
type Direction uint8

const (
	ToMaster Direction = iota
	ToClient
)

// Path returns a new path to the master, without faults.
func (m *Master) Path() *Path {
	return &Path{master: m, requests: flowing(), replies: flowing(), links: map[*link]struct{}{}}
}

func flowing() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// Client returns a new client that reaches the master on this path alone, with the options of
// [Master.Client] for a virtual master. [Masters.Close] closes it.
func (p *Path) Client(configure ...func(*redis.Options)) *redis.Client {
	return p.master.Client(append([]func(*redis.Options){func(opts *redis.Options) {
		opts.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) { return p.dial(ctx) }
		opts.PoolSize = virtualPoolSize
		opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	}}, configure...)...)
}

// Hold partitions the path in either or both directions. Everything that is sent waits, even
// the news that a connection was closed. [Path.Heal] lets it arrive late, like TCP's
// retransmission. Meanwhile connecting blocks until its context ends.
func (p *Path) Hold(requests, replies bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	hold(&p.requests, requests)
	hold(&p.replies, replies)
}

// Heal ends Hold.
func (p *Path) Heal() { p.Hold(false, false) }

func hold(gate *chan struct{}, held bool) {
	select {
	case <-*gate:
		if held {
			*gate = make(chan struct{})
		}
	default:
		if !held {
			close(*gate)
		}
	}
}

// Refuse makes the path refuse new connections, like a closed port, until it is called with
// false. Open ones stay open.
func (p *Path) Refuse(refused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = refused
}

// Lead makes new connections lead to another master, as when the address that the client dials
// has moved. The path's own master ends that. Open connections stay where they are.
func (p *Path) Lead(to *Master) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leads = to
}

// Break cuts the path's connections, with everything under way on them. The client notices
// when it next reads. New connections are not affected.
func (p *Path) Break() {
	p.mu.Lock()
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	p.mu.Unlock()
	for _, l := range links {
		l.cut()
	}
}

// Shape makes the path call f for everything sent from now on: how long it takes, and whether
// it is lost, which also cuts its connection. A lost request does not reach the master; the
// command of a lost reply has been executed. f is called once for each request (what a client
// sends in one go) and once for each reply, in their order on a connection, and once for
// connecting, which takes as long as a request and is never lost. With nil, the path takes no
// time.
func (p *Path) Shape(f func(Direction) (delay time.Duration, lost bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shape = f
}

// draw calls the function of Shape.
func (p *Path) draw(d Direction) (time.Duration, bool) {
	if p == nil {
		return 0, false
	}
	p.mu.Lock()
	f := p.shape
	p.mu.Unlock()
	if f == nil {
		return 0, false
	}
	return f(d)
}

// gate returns a channel that is closed unless Hold holds direction d.
func (p *Path) gate(d Direction) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d == ToMaster {
		return p.requests
	}
	return p.replies
}

// dial connects to the master once neither direction is held.
func (p *Path) dial(ctx context.Context) (net.Conn, error) {
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: p.master.remote(), Err: err}
	}
	// TCP sends a lost SYN again, so only the delay counts.
	delay, _ := p.draw(ToMaster)
	timer := time.NewTimer(delay)
	defer timer.Stop()
	if err := await(ctx, p.master, timer.C); err != nil {
		return fail(err)
	}
	for _, d := range []Direction{ToMaster, ToClient} {
		if err := await(ctx, p.master, p.gate(d)); err != nil {
			return fail(err)
		}
	}
	p.mu.Lock()
	refused, to := p.refused, p.leads
	p.mu.Unlock()
	if to == nil {
		to = p.master
	}
	if refused {
		return fail(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	}
	return to.dialInProcess(ctx, p)
}

// await waits for c until ctx ends or the master is closed: a closed client goes on dialling,
// and [Masters.Close] must not wait for that forever.
func await[T any](ctx context.Context, m *Master, c <-chan T) error {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		m.mu.Lock()
		closed := m.closed
		m.mu.Unlock()
		if closed {
			return net.ErrClosed
		}
		select {
		case <-c:
			return nil
		case <-ctx.Done():
			return os.ErrDeadlineExceeded
		case <-look.C:
		}
	}
}

func (p *Path) add(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links[l] = struct{}{}
}

func (p *Path) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}
