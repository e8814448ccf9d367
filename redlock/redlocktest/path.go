package redlocktest

import (
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

// Path is the network between one client and one master. A test can use it to cut off one
// client while others reach the master. Faults of the master itself, such as [Master.Stall] or
// [Master.Delay], apply in addition. Its connections are in-process, in real and in virtual
// time. Its methods are safe for concurrent use.
type Path inmemory.Path

func (p *Path) in() *inmemory.Path { return (*inmemory.Path)(p) }

// Path returns a new path to the master, without faults.
func (m *Master) Path() *Path { return (*Path)(m.in().Path()) }

// Client returns a new client that reaches the master on this path alone, with the options of
// [Master.Client] for a virtual master. [Masters.Close] closes it.
func (p *Path) Client(configure ...func(*redis.Options)) *redis.Client {
	return p.in().Client(configure...)
}

// Hold partitions the path in either or both directions. Everything that is sent waits, even
// the end of a connection. [Path.Heal] lets it arrive late, like TCP's
// retransmission. Meanwhile connecting blocks until its context ends.
func (p *Path) Hold(requests, replies bool) { p.in().Hold(requests, replies) }

// Heal ends Hold.
func (p *Path) Heal() { p.in().Heal() }

// Break cuts the path's connections, with everything under way on them. The client notices
// when it next reads. New connections are not affected.
func (p *Path) Break() { p.in().Break() }

// Refuse makes the path refuse new connections, like a closed port, until it is called with
// false. Open ones stay open.
func (p *Path) Refuse(refused bool) { p.in().Refuse(refused) }

// BreakSubscriptions cuts the path's connections with a subscription, like [Path.Break], and
// no others.
func (p *Path) BreakSubscriptions() { p.in().BreakSubscriptions() }
