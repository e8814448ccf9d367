package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorumlock/redlock/bench/result"
)

// keeping holds the measurements of a number of locks kept alive with one ttl.
type keeping struct {
	locks    int
	ttl      time.Duration
	observed spread // nanoseconds
	cores    spread
	perLock  spread // bytes
	rate     spread // renewals a second
	lost     spread
	acquire  spread // nanoseconds for all of them
	release  spread
}

// kept groups measurements of the same number of locks and ttl, the largest last.
func kept(renewals []result.Renewal) []keeping {
	type size struct {
		locks int
		ttl   time.Duration
	}
	groups := map[size][]result.Renewal{}
	for _, r := range renewals {
		at := size{r.Locks, r.TTL}
		groups[at] = append(groups[at], r)
	}
	all := make([]keeping, 0, len(groups))
	for at, group := range groups {
		of := func(f func(result.Renewal) float64) spread {
			var figures []float64
			for _, r := range group {
				figures = append(figures, f(r))
			}
			return spreadOf(figures)
		}
		all = append(all, keeping{
			locks: at.locks, ttl: at.ttl,
			observed: of(func(r result.Renewal) float64 { return float64(r.For) }),
			cores:    of(func(r result.Renewal) float64 { return r.Cores }),
			perLock:  of(func(r result.Renewal) float64 { return r.PerLock }),
			rate:     of(func(r result.Renewal) float64 { return r.PerSecond }),
			lost:     of(func(r result.Renewal) float64 { return float64(r.Lost) }),
			acquire:  of(func(r result.Renewal) float64 { return float64(r.AcquireTook) }),
			release:  of(func(r result.Renewal) float64 { return float64(r.ReleaseTook) }),
		})
	}
	slices.SortFunc(all, func(a, b keeping) int {
		return cmp.Or(cmp.Compare(a.locks, b.locks), cmp.Compare(a.ttl, b.ttl))
	})
	return all
}
