//go:build linux

package chaos

import (
	"math/rand/v2"
	"slices"
	"time"
)

// terms describe a storm: how its clients are configured, and what may fail.
type terms struct {
	name    string
	keys    int // how many keys there are
	fencing bool
	guard   time.Duration // redlock.Config.RestartGuard
	skew    time.Duration // the largest difference of a client's clock from the machine's
	amnesia bool
	without []string // kinds of faults that are not drawn
}

const (
	// guard is the longest ttl, as RestartGuard requires. The storm shows that restarts are
	// noticed. It would hardly show a quarantine that is somewhat too short, because uptimes
	// are in whole seconds; internal/lab/sim does.
	guard = longestTTL
	// quarantine is the longest time for which a master's votes do not count after a restart.
	// Its uptime is in whole seconds, so the master may seem a second younger than it is.
	quarantine = guard + time.Second
	// agreeing makes any two clocks differ by less than guard − nodeTimeout. Where masters
	// forget fences, the order of tokens depends on that (docs/safety.md).
	agreeing = (guard-nodeTimeout)/2 - time.Millisecond
)

var (
	// plain is a storm over locks without tokens.
	plain = terms{name: "plain", keys: 2}

	// fenced is a storm with clocks that are hours apart. Fences must not be forgotten then,
	// because only they keep tokens in order.
	fenced = terms{name: "fenced", keys: 2, fencing: true, skew: time.Hour, without: []string{forgets}}

	// guarded is a storm in which masters forget again and again. Each restart causes a
	// quarantine, with memory or without, so amnesia sets the pace of all restarts. There are
	// more keys, because forgetting is noticed only if a key is held.
	guarded = terms{
		name: "guarded", keys: len(keys), fencing: true, skew: agreeing, guard: guard,
		amnesia: true, without: []string{crashes, forgets},
	}

	// unguarded is the same without the guard.
	unguarded = func() terms {
		u := guarded
		u.name, u.guard = "unguarded", 0
		return u
	}()
)

// ahead returns how far a client's clock is ahead of the machine's. Half of the clocks differ
// as much as they may.
func (t terms) ahead(seed uint64, client int) time.Duration {
	if t.skew == 0 {
		return 0
	}
	dice := rand.New(rand.NewPCG(seed, clockStream+uint64(client)))
	switch dice.IntN(4) {
	case 0:
		return -t.skew
	case 1:
		return t.skew
	}
	return upTo(dice, 2*t.skew) - t.skew
}

// keeps reports whether a key on a master is there to stay, according to redlock.Config.
func (t terms) keeps(key string) bool {
	fence := func(of string) bool { return key == "redlock:fence:{"+of+"}" }
	return t.guard > 0 && key == "redlock:server" || t.fencing && slices.ContainsFunc(keys, fence)
}
