package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/status"
	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/leash"
	"github.com/quorumlock/redlock/internal/trylock"
	"github.com/quorumlock/redlock/redlock"
)

// errAtOnce ends a wait that must not even take the time to leave the queues.
var errAtOnce = errors.New("interrupted twice")

// acquire waits for the lock as the flags say. Without --wait the first attempt needs a quorum,
// because nobody may be there to see that there never is one. The first signal ends the wait. A
// second one, if it is an interrupt, ends it without leaving the queues.
func (f *flags) acquire(ctx context.Context, locks *redlock.Redlock, key string, signals <-chan os.Signal, p *printer) (*redlock.Lock, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if f.wait > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(f.wait))
		defer cancel()
	}
	type result struct {
		lock *redlock.Lock
		err  error
	}
	began := time.Now()
	done := make(chan result, 1)
	go func() {
		ttl := time.Duration(f.ttl)
		lock, err := f.first(ctx, locks, key, ttl)
		if f.waitsAfter(err) && ctx.Err() == nil {
			shown := p.waits(locks, key, f.rarest())
			lock, err = locks.Acquire(ctx, key, ttl)
			shown()
		}
		done <- result{lock, err}
	}()
	var by os.Signal
	for {
		select {
		case r := <-done:
			switch {
			case by != nil && r.lock != nil:
				_ = r.lock.Release(context.Background())
				fallthrough
			case by != nil:
				return nil, interrupted(by)
			case r.err != nil:
				return nil, f.refused(key, r.err)
			}
			p.acquired(r.lock, time.Since(began))
			return r.lock, nil
		case s := <-signals:
			if slices.Contains(leash.Messages(), s) {
				continue // it is for a command that does not run yet
			}
			if by != nil && s == os.Interrupt {
				return nil, &cli.ExitError{Code: interrupted(s).(*cli.ExitError).Code, Err: errAtOnce}
			}
			if by == nil {
				by = s
			}
			cancel()
		}
	}
}

// first makes the first attempt. With --nonblock, after which nobody waits, it makes more of them
// until some client has the lock: several that try at one instant may all fail.
func (f *flags) first(ctx context.Context, locks *redlock.Redlock, key string, ttl time.Duration) (*redlock.Lock, error) {
	if f.nonblock {
		return trylock.Acquire(ctx, locks, key, ttl)
	}
	return locks.TryAcquire(ctx, key, ttl)
}

// waitsAfter reports whether to wait after a first attempt that has failed with err.
func (f *flags) waitsAfter(err error) bool {
	switch {
	case f.standby: // the error of a wrong argument is no QuorumError
		var failed *redlock.QuorumError
		return errors.As(err, &failed) && !errors.Is(err, redlock.ErrDuplicateNode)
	case f.nonblock:
		return false
	}
	return errors.Is(err, redlock.ErrHeld) || f.wait > 0 && errors.Is(err, redlock.ErrNoQuorum)
}

// A long wait is shown again every nextNote on a terminal. Elsewhere it writes lines, ever more
// rarely.
const (
	firstSight = 2 * time.Second
	nextNote   = time.Second
	rarest     = 5 * time.Minute
)

// rarest returns the longest pause between two lines. A standby may wait for months.
func (f *flags) rarest() time.Duration {
	if f.standby {
		return 24 * time.Hour
	}
	return rarest
}

// waits shows the holder of the lock until stop is called, at pauses of up to rarest if stderr is
// not a terminal. Records cannot take each other's place, so on a terminal there is one for each
// change.
func (p *printer) waits(locks *redlock.Redlock, key string, rarest time.Duration) (stop func()) {
	if p.quiet {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(ended)
		var s lastHolder
		for pause := firstSight; ; {
			select {
			case <-ctx.Done():
				if p.live {
					p.eraseNote()
				}
				return
			case <-time.After(pause):
			}
			if p.live && !leash.Foreground() {
				continue // another process uses the terminal
			}
			if seen, err := locks.Inspect(ctx, key); err == nil {
				now := time.Now()
				waited := now.Sub(began)
				text, attrs := s.describe(seen, now)
				if s.changed || p.json == nil || !p.live {
					p.note(eventWaiting, fmt.Sprintf("waiting for %v, %s: %s", waited.Round(time.Second), text, key), append(attrs, slog.Duration("waited", waited))...)
				}
			}
			if p.live {
				pause = nextNote
			} else {
				pause = min(2*pause, rarest)
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// lastHolder is the holder that was last seen, and when it was first seen.
type lastHolder struct {
	holder  string
	since   time.Time
	state   string // the verdict and the holder of the last look
	changed bool   // the state is not that of the look before
}

func (s *lastHolder) describe(i *redlock.Inspection, now time.Time) (text string, attrs []slog.Attr) {
	nodes := len(i.Nodes)
	answered := nodes - status.Inspection{Inspection: i}.Count(status.Failed)
	holder, on := i.Holder()
	verdict := i.Verdict().String()
	s.changed = s.state != verdict+holder
	s.state = verdict + holder
	attrs = []slog.Attr{slog.String("verdict", verdict), slog.Int("nodes", nodes), slog.Int("answered", answered)}
	switch {
	case answered < i.Need:
		return fmt.Sprintf("no quorum, %d of %d masters answer", answered, nodes), attrs
	case holder == "":
		return fmt.Sprintf("nobody holds a majority of %d masters", nodes), attrs
	}
	var left time.Duration
	for _, n := range i.Nodes {
		if n.Holder == holder {
			left = max(left, n.TTL)
		}
	}
	if s.holder != holder {
		s.holder, s.since = holder, now
	}
	held := now.Sub(s.since)
	attrs = append(attrs, slog.String("holder", holder), slog.Int("on", on), slog.Duration("held", held), slog.Duration("left", left))
	if owner, _ := i.Owner(); owner != "" {
		attrs = append(attrs, slog.String("owner", owner))
		holder = fmt.Sprintf("%s (%s)", owner, holder)
	}
	return fmt.Sprintf("held by %s on %d of %d for %v+, %v left",
		holder, on, nodes, held.Round(time.Second), left.Round(time.Second)), attrs
}
