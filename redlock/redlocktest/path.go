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

// Path is the network between one client and one master, so that a test can cut
// one client off while others reach the master. Faults of the master itself, such
// as [Master.Stall] or [Master.Delay], come on top. Its connections are in-process,
// in real and in virtual time. Its methods are safe for concurrent use.
type Path struct {
	master *Master

	mu       sync.Mutex // never held while anything blocks
	refused  bool
	leads    *Master       // where new connections lead; nil: to the path's own master
	requests chan struct{} // closed while what is sent to the master travels
	replies  chan struct{} // the same for what the master sends
	shape    func(Direction) (delay time.Duration, lost bool)
	torn     func(d Direction, bytes int) (arrive int)
	links    map[*link]struct{}
}

// Direction is one of the two ways of a path.
type Direction uint8

const (
	ToMaster Direction = iota
	ToClient
)

// Path returns a new path to the master, on which nothing is amiss.
func (m *Master) Path() *Path {
	return &Path{master: m, requests: flowing(), replies: flowing(), links: map[*link]struct{}{}}
}

func flowing() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// Client returns a new client that reaches the master on this path alone, with the
// options of [Master.Client] for a virtual master. [Masters.Close] closes it.
func (p *Path) Client(configure ...func(*redis.Options)) *redis.Client {
	return p.master.Client(append([]func(*redis.Options){func(opts *redis.Options) {
		opts.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) { return p.dial(ctx) }
		opts.PoolSize = virtualPoolSize
		opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	}}, configure...)...)
}

// Hold partitions the path in either direction or in both: what is sent waits where
// it is, also the news that a connection was closed. [Path.Heal] lets it arrive,
// late, as TCP sends again what was lost. Meanwhile connecting takes until its
// context ends.
func (p *Path) Hold(requests, replies bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	hold(&p.requests, requests)
	hold(&p.replies, replies)
}

// Heal ends what Hold began.
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

// Refuse makes new connections be refused, as those to a closed port are, until it
// is called with false. Those that are open live on.
func (p *Path) Refuse(refused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = refused
}

// Lead makes new connections lead to another master, as they do when the address that
// the client dials has moved to another server; the path's own master ends that. Those
// that are open stay where they are.
func (p *Path) Lead(to *Master) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leads = to
}

// Break cuts the path's connections, and with them what is under way on them. The
// client notices when it next reads; new connections are as before.
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

// Shape has f asked about everything that is sent from now on: how long it takes,
// and whether it is lost, which also cuts its connection. A request is lost before
// it reaches the master; of a reply the command has been executed. f is asked once
// for each request (what a client sends in one go) and once for each reply, in
// their order on a connection, and once for connecting, which takes as long as a
// request and is not lost. nil is a path that takes no time.
func (p *Path) Shape(f func(Direction) (delay time.Duration, lost bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shape = f
}

// draw asks the shape.
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

// gate is closed while what travels in direction d does.
func (p *Path) gate(d Direction) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d == ToMaster {
		return p.requests
	}
	return p.replies
}

// dial connects to the master, when both directions let it.
func (p *Path) dial(ctx context.Context) (net.Conn, error) {
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: p.master.remote(), Err: err}
	}
	// A lost SYN is sent again, so only the delay counts.
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

// await waits for c as long as ctx lives, and the master: a client that is closed
// goes on dialling, and [Masters.Close] does not wait for that forever.
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
