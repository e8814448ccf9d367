package sim

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// path is the network between one client and one node: a base latency with jitter,
// and what the faults add to it.
type path struct {
	*redlocktest.Path
	base time.Duration

	mu     sync.Mutex
	random [2]*rand.Rand // for each direction, as their order among each other is the scheduler's
	// How many faults do this to it.
	slow      int           // a long tail
	late      time.Duration // requests take at least that much longer
	loseAsk   int
	loseReply int
	torn      [2]int // what is sent in one go
	refused   int
	held      [2]int // a partition; or its client stands still
}

func newPath(seed uint64, client, node int, m *redlocktest.Master) *path {
	p := &path{Path: m.Path()}
	for d := range p.random {
		p.random[d] = stream(seed, "path", client, node, d)
	}
	p.base = between(p.random[0], 50*time.Microsecond, 2*time.Millisecond)
	p.Shape(p.shape)
	p.Tear(p.tear)
	return p
}

// lossOf is how many of the requests or replies a losing path loses.
const lossOf = 0.3

func (p *path) shape(d redlocktest.Direction) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.random[d]
	delay := p.base/2 + between(r, 1, p.base)
	if p.slow > 0 {
		delay += time.Duration(r.ExpFloat64() * float64(20*time.Millisecond))
	}
	if p.late > 0 && d == redlocktest.ToMaster {
		delay += p.late + between(r, 1, p.late)
	}
	loses := p.loseAsk
	if d == redlocktest.ToClient {
		loses = p.loseReply
	}
	return delay, loses > 0 && r.Float64() < lossOf
}

// tornOf is how many of the requests, and of the replies, such a path tears. A batch
// gets as many replies as it has commands, and the first torn one is its end.
var tornOf = [2]float64{redlocktest.ToMaster: 0.3, redlocktest.ToClient: 0.1}

func (p *path) tear(d redlocktest.Direction, bytes int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.random[d]; p.torn[d] > 0 && r.Float64() < tornOf[d] {
		return r.IntN(bytes)
	}
	return bytes
}

// set changes the path, and holds or heals as that demands.
func (p *path) set(f func(p *path)) {
	p.mu.Lock()
	f(p)
	ask, reply, refused := p.held[redlocktest.ToMaster] > 0, p.held[redlocktest.ToClient] > 0, p.refused > 0
	p.mu.Unlock()
	p.Hold(ask, reply)
	p.Refuse(refused)
}
