package load

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumlock/redlock/bench/subject"
)

const (
	warmCycles = 2
	warmLimit  = 30 * time.Second // a thousand callers dial thousands of connections
)

// caller is the work of one goroutine: it warms up, waits for the start, and makes cycles.
func (g *generator) caller(i int, c subject.Caller) {
	used, err := g.warmUp(i, c)
	g.works[i].cold = err
	g.warm.Done()
	<-g.begin
	g.works[i] = g.work(i, used, c)
}

// warmUp makes cycles before the turn, and returns how many keys it has used.
func (g *generator) warmUp(i int, c subject.Caller) (used int, err error) {
	ctx := context.Background()
	start := time.Now()
	for good := 0; good < warmCycles || time.Since(start) < g.turn.Warm; {
		if g.stop.Load() {
			return used, nil
		}
		key := g.keys.key(i, used)
		used++
		if err = c.Acquire(ctx, key); err == nil {
			err = c.Release(ctx)
		}
		if err == nil {
			good++
		} else if time.Since(start) > warmLimit {
			return used, fmt.Errorf("warm-up: %w", err)
		}
	}
	return used, nil
}

// work makes cycles until the turn is over. The end of each cycle is the start of the next, so
// that all time is accounted for.
func (g *generator) work(i, used int, c subject.Caller) (w work) {
	ctx := context.Background()
	hists := &g.hists[i%shards]
	start := time.Since(g.start)
	for g.more(start) {
		key := g.keys.key(i, used)
		used++
		err := c.Acquire(ctx, key)
		acquired := time.Since(g.start)
		end := acquired
		if err == nil {
			err = c.Release(ctx)
			end = time.Since(g.start)
		}
		if end > g.turn.Limit {
			err = errCut
			end = g.turn.Limit
		}
		if err == nil {
			w.cycles++
			hists.acquire.Record(acquired - start)
			hists.cycle.Record(end - start)
		} else {
			w.errors++
			w.err = err
		}
		start = end
	}
	w.took = max(start, 1)
	return w
}

// more reports whether to start another cycle.
func (g *generator) more(now time.Duration) bool {
	if g.stop.Load() || now >= g.turn.For {
		return false
	}
	return g.turn.Cycles == 0 || g.quota.Add(-1) >= 0
}
