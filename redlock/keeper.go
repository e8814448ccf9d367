package redlock

import (
	"container/heap"
	"sync"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// keeper looks after all locks of a Redlock with one goroutine and one timer: it
// ends each at its Until and starts the renewals that are due. It never waits
// for a node, so a hung master cannot make it late; and ends come before
// renewals, however many of those are due, because who holds a lock must know of
// its end before anybody else can acquire it.
type keeper struct {
	clock clock.Clock
	wake  chan struct{} // holds one wake-up
	done  chan struct{}

	mu       sync.Mutex
	ends     agenda
	renews   agenda
	renewing int       // renewals that are not decided
	full     bool      // so many that more have to wait
	armed    time.Time // what the timer is set for; zero: not set
	drained  bool
}

// fewRenewals are started before the keeper looks at the ends again. Starting
// one takes microseconds.
const fewRenewals = 64

// maxRenewing is how many renewals are under way at a time. Locks that were acquired
// together are due together: 100,000 at once keep the lanes busy for two seconds, and
// whoever acquires or releases meanwhile would wait behind them for longer than
// NodeTimeout. Two batches of each lane take some 30 ms on loopback, and on a link of
// 50 ms still allow for 40,000 renewals a second.
//
// While a majority hangs, the renewals that are under way stay so until it answers, its
// connections break, or their locks are over. Others could not be sent meanwhile: a lane
// has one batch under way, for all keys. Fewer renewals at a time, as long as none is
// late, were tried on masters that are slow for lack of a processor: acquisitions did not
// find more gaps, as small batches cost such masters more.
const maxRenewing = 2048

func newKeeper(clk clock.Clock) *keeper {
	return &keeper{
		clock:  clk,
		wake:   make(chan struct{}, 1),
		done:   make(chan struct{}),
		ends:   agenda{of: func(l *Lock) *appointment { return &l.ends }},
		renews: agenda{of: func(l *Lock) *appointment { return &l.renews }},
	}
}

// endAt has the lock ended at t instead of when it was to be before. It takes a
// new lock in.
func (k *keeper) endAt(l *Lock, t time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.set(&k.ends, l, t)
}

// renewAt has the lock renewed at t.
func (k *keeper) renewAt(l *Lock, t time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.set(&k.renews, l, t)
}

// hasten has the lock renewed at t, if it was to be later. It does nothing to a lock that
// is not to be renewed, or just is: that one is planned anew when it is decided.
func (k *keeper) hasten(l *Lock, t time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.renews.place > 0 && t.Before(l.renews.time) {
		k.set(&k.renews, l, t)
	}
}

// set changes an agenda, and wakes the keeper if it has to look sooner; mu is held.
func (k *keeper) set(a *agenda, l *Lock, t time.Time) {
	if k.drained {
		return
	}
	a.set(l, t)
	if k.armed.IsZero() || t.Before(k.armed) {
		k.armed = t
		k.rouse()
	}
}

// rouse has run look again.
func (k *keeper) rouse() {
	select {
	case k.wake <- struct{}{}:
	default: // an unread wake-up serves as well
	}
}

// forget drops a lock that has ended.
func (k *keeper) forget(l *Lock) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ends.drop(l)
	k.renews.drop(l)
}

// stop makes run return, after what it is just doing.
func (k *keeper) stop() { close(k.done) }

// drain returns the locks that are still held, when run has ended.
func (k *keeper) drain() []*Lock {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drained = true
	held := k.ends.locks
	k.ends.locks, k.renews.locks = nil, nil
	for _, l := range held {
		l.ends, l.renews = appointment{}, appointment{}
	}
	return held
}

// run does what is due, until the keeper is stopped.
func (k *keeper) run() {
	timer := k.clock.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now := k.clock.Now()
		for l := k.due(&k.ends, now); l != nil; l = k.due(&k.ends, now) {
			l.expire(now)
		}
		more := true
		for range fewRenewals {
			l := k.due(&k.renews, now)
			if more = l != nil; !more {
				break
			}
			l.renew()
		}
		if more {
			select {
			case <-k.done:
				return
			default:
				continue
			}
		}
		if next := k.arm(); !next.IsZero() {
			timer.Reset(next.Sub(k.clock.Now()))
		} else {
			timer.Stop()
		}
		select {
		case <-timer.C():
		case <-k.wake:
		case <-k.done:
			return
		}
	}
}

// due takes a lock out of the agenda whose time has come, nil if there is none, or
// if it is for a renewal and too many are under way; renewed must follow each.
// A lock that is to be ended stays in: until it is, it counts as held.
func (k *keeper) due(a *agenda, now time.Time) *Lock {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(a.locks) == 0 || now.Before(a.locks[0].at(a).time) {
		return nil
	}
	l := a.locks[0]
	if a == &k.renews {
		if k.full = k.renewing >= maxRenewing; k.full {
			return nil
		}
		k.renewing++
		a.drop(l)
	}
	return l
}

// renewed makes room for another renewal.
func (k *keeper) renewed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.renewing--
	if k.full {
		k.full = false
		k.rouse()
	}
}

// arm is what the timer must be set for next, zero for nothing. The time is
// recorded: a lock that is due later than that need not wake the keeper.
func (k *keeper) arm() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.armed = time.Time{}
	for _, a := range []*agenda{&k.ends, &k.renews} {
		if len(a.locks) > 0 && !(k.full && a == &k.renews) { // renewed wakes for those
			if t := a.locks[0].at(a).time; k.armed.IsZero() || t.Before(k.armed) {
				k.armed = t
			}
		}
	}
	return k.armed
}

// appointment is a lock's place in an agenda.
type appointment struct {
	time  time.Time
	place int // in the heap, from 1; 0 when not in it
}

// agenda is a container/heap of locks by one of their appointments.
type agenda struct {
	locks []*Lock
	of    func(*Lock) *appointment
}

func (l *Lock) at(a *agenda) *appointment { return a.of(l) }

func (a *agenda) set(l *Lock, t time.Time) {
	at := a.of(l)
	at.time = t
	if at.place == 0 {
		heap.Push(a, l)
	} else {
		heap.Fix(a, at.place-1)
	}
}

func (a *agenda) drop(l *Lock) {
	if at := a.of(l); at.place > 0 {
		heap.Remove(a, at.place-1)
	}
}

func (a *agenda) Len() int           { return len(a.locks) }
func (a *agenda) Less(i, j int) bool { return a.of(a.locks[i]).time.Before(a.of(a.locks[j]).time) }

func (a *agenda) Swap(i, j int) {
	a.locks[i], a.locks[j] = a.locks[j], a.locks[i]
	a.of(a.locks[i]).place, a.of(a.locks[j]).place = i+1, j+1
}

// Push and Pop are container/heap's; use set and drop.
func (a *agenda) Push(x any) {
	a.locks = append(a.locks, x.(*Lock))
	a.of(x.(*Lock)).place = len(a.locks)
}

func (a *agenda) Pop() any {
	last := len(a.locks) - 1
	l := a.locks[last]
	a.locks[last] = nil
	a.locks = a.locks[:last]
	a.of(l).place = 0
	return l
}
