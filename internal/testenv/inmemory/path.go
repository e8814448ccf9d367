package inmemory

import (
	"context"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
)

// Path is the network between one client and one master. A test can use it to cut off one
// client while others reach the master. Faults of the master itself, such as [Master.Stall] or
// [Master.Delay], apply in addition. Its connections are in-process, in real and in virtual
// time. Its methods are safe for concurrent use.
type Path struct {
	*faultlink.Path
	master *Master

	mu      sync.Mutex // never held while anything blocks
	refused bool
	leads   *Master // where new connections lead; nil for the path's own master
}

// Path returns a new path to the master, without faults.
func (m *Master) Path() *Path { return &Path{Path: faultlink.NewPath(), master: m} }

// Client returns a new client that reaches the master on this path alone, with the options of
// [Master.Client] for a virtual master.
func (p *Path) Client(configure ...func(*redis.Options)) *redis.Client {
	return p.master.Client(append([]func(*redis.Options){func(opts *redis.Options) {
		opts.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) { return p.dial(ctx) }
		opts.PoolSize = virtualPoolSize
		opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	}}, configure...)...)
}

// Refuse makes the path refuse new connections, like a closed port, until it is called with
// false. Open connections stay open.
func (p *Path) Refuse(refused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = refused
}

// Lead makes new connections lead to another master, as when the address that the client dials
// has moved. Leading to the path's own master ends that. Open connections stay where they are.
func (p *Path) Lead(to *Master) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leads = to
}

// dial connects to the master once neither direction is held. It takes as long as a request,
// and is never lost.
func (p *Path) dial(ctx context.Context) (net.Conn, error) {
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: p.master.remote(), Err: err}
	}
	// TCP sends a lost SYN again, so only the delay counts.
	delay, _ := p.Draw(faultlink.ToServer)
	timer := time.NewTimer(delay)
	defer timer.Stop()
	if err := await(ctx, p.master, timer.C); err != nil {
		return fail(err)
	}
	for _, d := range []faultlink.Direction{faultlink.ToServer, faultlink.ToClient} {
		if err := await(ctx, p.master, p.Gate(d)); err != nil {
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
