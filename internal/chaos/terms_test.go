//go:build linux

package chaos

import (
	"math/rand/v2"
	"slices"
	"time"
)

// terms are those of a storm: how its clients are configured, and what may fail.
type terms struct {
	name    string
	keys    int // how many there are
	fencing bool
	guard   time.Duration // redlock.Config.RestartGuard
	skew    time.Duration // a client's clock stands at most so far from the machine's
	amnesia bool
	without []string // kinds of faults that are not drawn
}

const (
	// guard is the longest ttl, as its documentation demands. That a restart is noticed
	// is what its storm shows. A quarantine of somewhat less than guard it would hardly
	// see, since uptimes are in whole seconds; internal/sim is for that.
	guard = longestTTL
	// quarantine is the longest that a master's votes do not count after a restart: by
	// its uptime, which is in whole seconds, it may be younger by one than it is.
	quarantine = guard + time.Second
	// agreeing clocks differ by less than guard − nodeTimeout, any two of them: where
	// masters forget fences, the order of tokens rests on that (docs/safety.md).
	agreeing = (guard-nodeTimeout)/2 - time.Millisecond
)

var (
	// plain is a storm over locks without tokens.
	plain = terms{name: "plain", keys: 2}

	// fenced is one whose clients' clocks are hours apart. Then fences must not be
	// forgotten, and nothing but them keeps tokens in order.
	fenced = terms{name: "fenced", keys: 2, fencing: true, skew: time.Hour, without: []string{forgets}}

	// guarded is one in which masters forget, again and again. As each restart is a
	// quarantine, with memory or without, amnesia sets the pace of all of them. There are
	// more keys, since who forgets must take one from somebody to be noticed.
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

// ahead is how far the clock of a client is before the machine's. Half of them differ
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

// keeps tells that a key on a master is there to stay: redlock.Config says which.
func (t terms) keeps(key string) bool {
	fence := func(of string) bool { return key == "redlock:fence:{"+of+"}" }
	return t.guard > 0 && key == "redlock:server" || t.fencing && slices.ContainsFunc(keys, fence)
}
