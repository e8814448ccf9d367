//go:build linux

package chaos

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// storm strikes a field with faults, several at a time.
type storm struct {
	*field
	ctx         context.Context // ends with the storm
	work        sync.WaitGroup
	begun, over time.Duration

	mu     sync.Mutex
	struck map[string]int // how many faults of each kind
}

// rage returns when the storm has lasted for d and every fault is over.
func (f *field) rage(d time.Duration) *storm {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	s := &storm{field: f, ctx: ctx, begun: f.clock.now(), struck: map[string]int{}}
	var forgetting sync.WaitGroup
	if f.terms.amnesia {
		forgetting.Go(s.forget)
	}
	kinds, dice := kindsBut(f.terms.without...), rand.New(rand.NewPCG(f.seed, 0))
	for ctx.Err() == nil {
		next := drawFault(dice, kinds, len(f.masters), len(f.seats))
		s.strike(next)
		wait(ctx, next.pause)
	}
	forgetting.Wait()
	s.over = f.clock.now()
	s.work.Wait()
	return s
}

// forget restarts masters without their memory, again and again.
func (s *storm) forget() {
	dice := rand.New(rand.NewPCG(s.seed, forgetStream))
	for s.ctx.Err() == nil {
		gap, forget := drawAmnesia(dice, len(s.masters))
		s.strike(gap)
		wait(s.ctx, gap.pause)
		for !s.strike(forget) && s.ctx.Err() == nil {
			wait(s.ctx, 10*time.Millisecond) // another fault has them
		}
		wait(s.ctx, forget.pause)
	}
}

// strike begins a fault on each of its targets that no other fault has. It reports whether
// there was one.
func (s *storm) strike(d draw) (struck bool) {
	switch {
	case d.kind.master != nil:
		for _, i := range d.nodes {
			m := s.masters[i]
			struck = s.begin(d, &m.busy, nil, i+1, func() error { return d.kind.master(s, m, d) }) || struck
		}
	case d.kind.wire != nil:
		seats := s.seats
		if d.pair {
			seats = seats[d.place : d.place+1]
		}
		for _, seat := range seats {
			for _, i := range d.nodes {
				w := seat.wires[i]
				struck = s.begin(d, &w.busy, seat, i+1, func() error { return d.kind.wire(s, w, d) }) || struck
			}
		}
	default:
		seat := s.seats[d.place]
		struck = s.begin(d, &seat.busy, seat, 0, func() error { return d.kind.client(s, seat, d) })
	}
	if struck {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.struck[d.kind.name]++
	}
	return struck
}

// begin starts a fault and records it when it is over. It returns false if another fault has
// the target.
func (s *storm) begin(d draw, busy *sync.Mutex, of *seat, node int, fault func() error) bool {
	if !busy.TryLock() {
		return false
	}
	client := 0
	if of != nil {
		client = int(of.number.Load())
	}
	begun := s.clock.now()
	s.work.Go(func() {
		defer busy.Unlock()
		if err := fault(); err != nil {
			s.Errorf("%s: %v", d.kind.name, err)
		}
		s.fault(d.kind.name, begun, client, node)
	})
	return true
}
