// Package schedule ends and renews locks on time.
//
// A [Scheduler] serves all locks of a Redlock with one goroutine and one timer. It never
// waits for a node, so a master that hangs cannot delay it. It ends locks before it renews
// others, however many renewals are due: a holder must learn of the end of its lock before
// another client can acquire the key.
package schedule

import (
	"sync"
	"time"

	"github.com/quorumlock/redlock/clock"
)

const (
	// batch is how many renewals the scheduler starts before it checks for ends again.
	// Starting one takes microseconds.
	batch = 64

	// maxRenewing is how many renewals are under way at a time. Locks that were acquired
	// together are due together: 100,000 at once keep the lanes busy for two seconds, and
	// an acquisition or a release would wait behind them for longer than NodeTimeout. Two
	// batches of each lane take some 30 ms on loopback, and a link of 50 ms still allows
	// 40,000 renewals a second.
	//
	// While a majority hangs, these renewals stay under way until it answers, its
	// connections break, or their locks end. Others could not be sent meanwhile: a lane has
	// one batch under way, for all keys. A lower limit was measured on masters that are slow
	// for lack of a processor. Acquisitions did not succeed more often, as many small batches
	// cost such masters more than a few large ones.
	maxRenewing = 2048
)

// Scheduler calls back when a task, which is a lock, has to end or to be renewed. Its methods may
// be called concurrently, and with the task's mutex held: only the goroutine calls back.
type Scheduler[T any] struct {
	clock   clock.Clock
	expire  func(task T, now time.Time)
	renew   func(task T)
	recheck chan struct{} // holds one signal: the earliest time may have changed
	done    chan struct{}
	running sync.WaitGroup

	mu       sync.Mutex
	ends     timerHeap[T]
	renewals timerHeap[T]
	renewing int       // renewals that have been started and are not done
	full     bool      // a renewal is due that must wait, as maxRenewing are under way
	armed    time.Time // the time that the timer is set for; zero: not set
	stopped  bool
}

// Entry records when a task is due. Each task keeps one; only its Scheduler uses it.
type Entry struct{ end, renewal due }

// New makes a Scheduler and starts its goroutine, which Stop ends. entry returns the Entry of a
// task. expire is called once the time of EndAt has come, and again until it has called Remove
// or EndAt. renew is called once for each RenewAt, and must be followed by RenewalDone. Neither
// callback may block.
func New[T any](clk clock.Clock, entry func(T) *Entry, expire func(task T, now time.Time), renew func(task T)) *Scheduler[T] {
	s := &Scheduler[T]{
		clock: clk, expire: expire, renew: renew,
		recheck:  make(chan struct{}, 1),
		done:     make(chan struct{}),
		ends:     timerHeap[T]{due: func(task T) *due { return &entry(task).end }},
		renewals: timerHeap[T]{due: func(task T) *due { return &entry(task).renewal }},
	}
	s.running.Go(s.run)
	return s
}

// EndAt schedules the end of a task, new or known, for t. It replaces the earlier time.
func (s *Scheduler[T]) EndAt(task T, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(&s.ends, task, t)
}

// RenewAt schedules the next renewal of a task for t. It replaces the earlier time.
func (s *Scheduler[T]) RenewAt(task T, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(&s.renewals, task, t)
}

// RenewBy moves the next renewal of a task to t if it is scheduled for later. It does nothing
// to a task without a scheduled renewal, such as one whose renewal is under way.
func (s *Scheduler[T]) RenewBy(task T, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.renewals.due(task); at.index > 0 && t.Before(at.time) {
		s.set(&s.renewals, task, t)
	}
}

// set changes a heap, and wakes the goroutine if t is before the time that the timer is set
// for. The caller holds mu.
func (s *Scheduler[T]) set(h *timerHeap[T], task T, t time.Time) {
	if s.stopped {
		return
	}
	h.set(task, t)
	if s.armed.IsZero() || t.Before(s.armed) {
		s.armed = t
		s.signal()
	}
}

// signal makes the goroutine look again for what is due.
func (s *Scheduler[T]) signal() {
	select {
	case s.recheck <- struct{}{}:
	default: // an unread signal serves as well
	}
}

// Remove drops a task: it is neither ended nor renewed any more.
func (s *Scheduler[T]) Remove(task T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends.remove(task)
	s.renewals.remove(task)
}

// RenewalDone makes room for another renewal.
func (s *Scheduler[T]) RenewalDone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewing--
	if s.full {
		s.full = false
		s.signal()
	}
}

// Stop ends the goroutine, after the callback that is under way, and returns the tasks that
// were not removed. Later calls schedule nothing.
func (s *Scheduler[T]) Stop() []T {
	close(s.done)
	s.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	tasks := s.ends.tasks
	s.ends.tasks, s.renewals.tasks = nil, nil
	for _, task := range tasks {
		*s.ends.due(task), *s.renewals.due(task) = due{}, due{}
	}
	return tasks
}

func (s *Scheduler[T]) run() {
	timer := s.clock.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now := s.clock.Now()
		for task, ok := s.nextEnd(now); ok; task, ok = s.nextEnd(now) {
			s.expire(task, now)
		}
		more := true
		for range batch {
			var task T
			if task, more = s.nextRenewal(now); !more {
				break
			}
			s.renew(task)
		}
		if more {
			select {
			case <-s.done:
				return
			default:
				continue
			}
		}
		if next := s.arm(); !next.IsZero() {
			timer.Reset(next.Sub(s.clock.Now()))
		} else {
			timer.Stop()
		}
		select {
		case <-timer.C():
		case <-s.recheck:
		case <-s.done:
			return
		}
	}
}

// nextEnd returns a task that has to end, or false. The task stays scheduled until the callback
// removes it, so that Stop finds it.
func (s *Scheduler[T]) nextEnd(now time.Time) (task T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ends.anyDue(now) {
		return task, false
	}
	return s.ends.tasks[0], true
}

// nextRenewal returns a task that has to be renewed, and takes it off the schedule. It returns
// false if there is none, or while maxRenewing are under way.
func (s *Scheduler[T]) nextRenewal(now time.Time) (task T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.renewals.anyDue(now) {
		return task, false
	}
	if s.full = s.renewing >= maxRenewing; s.full {
		return task, false
	}
	s.renewing++
	task = s.renewals.tasks[0]
	s.renewals.remove(task)
	return task, true
}

// arm returns and records the time for which the timer must be set; zero if nothing is
// scheduled. A task that is due later need not wake the goroutine.
func (s *Scheduler[T]) arm() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = s.ends.earliest()
	if s.full { // RenewalDone wakes the goroutine
		return s.armed
	}
	if t := s.renewals.earliest(); s.armed.IsZero() || !t.IsZero() && t.Before(s.armed) {
		s.armed = t
	}
	return s.armed
}
