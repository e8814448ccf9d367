package contend

import (
	"context"
	"time"

	"github.com/quorumlock/redlock/bench/subject"
)

// Span is one acquisition of one contender, from the call of Acquire. All contenders use the
// same clock.
type Span struct {
	Called    time.Time
	Acquired  time.Time // Acquire returned; zero: its context ended first
	Releasing time.Time // Release was called
}

// Log is what one contender did, in order. Only that contender writes it.
type Log struct {
	Spans  []Span
	Errors int    // acquisitions and releases that failed, but not because the turn ended
	Why    string // one of these errors
	Twice  int    // acquisitions during which another holder was inside
}

// work contends until ctx ends. It releases a key that it holds then.
func (c Contender) work(ctx context.Context, proof Proof, turn Turn) (log Log) {
	for ctx.Err() == nil {
		s := Span{Called: time.Now()}
		err := c.Caller.Acquire(ctx, turn.Key)
		if err == nil {
			s.Acquired = time.Now()
			err = c.hold(proof, turn, &s, &log)
		}
		ended := ctx.Err() != nil && s.Acquired.IsZero() // during a wait
		if ended || !s.Acquired.IsZero() {
			log.Spans = append(log.Spans, s)
		}
		if err != nil && !ended {
			log.Errors++
			log.Why = err.Error()
			Pause(ctx, time.Millisecond) // a contender whose calls fail at once must not spin
		}
		Pause(ctx, turn.Think)
	}
	return log
}

// hold holds the lock, checks that there is no other holder, and releases it.
func (c Contender) hold(proof Proof, turn Turn, s *Span, log *Log) error {
	alone := proof.Enter()
	if turn.Hold > 0 {
		time.Sleep(time.Until(s.Acquired.Add(turn.Hold)))
	}
	if !proof.Leave() || !alone {
		log.Twice++
	}
	s.Releasing = time.Now()
	return release(c.Caller)
}

// release releases the lock even after the contender's context has ended.
func release(c subject.Caller) error { return c.Release(context.Background()) }

// Pause returns after d, or when ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
