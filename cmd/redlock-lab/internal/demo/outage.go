package demo

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// outageKey is the lock of the demo. No other client uses its masters.
const outageKey = "invoice-42"

// outage is the demo on five masters in memory, of which three die. It also shows what locks alone
// cannot prevent.
type outage struct {
	masters *redlocktest.Masters
	urls    []string
	a       *client
	ttl     time.Duration
	held    *redlock.Lock
}

func demoOutage(ctx context.Context, ttl time.Duration, out presenter) (err error) {
	masters, err := redlocktest.New(5)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, masters.Close()) }()
	urls, err := shut(masters)
	if err != nil {
		return err
	}
	a, err := openClient("A", urls, redlock.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }() // before the masters

	o := &outage{masters: masters, urls: urls, a: a, ttl: ttl}
	return perform(ctx,
		fmt.Sprintf("Five Redis masters, in memory; none knows of the others. A client holds the lock "+
			"%q once a majority of them, 3 of 5, has granted it. Validity is how long it may rely "+
			"on that: the ttl of %s, less the time elapsed, less a margin for clocks that drift apart.",
			outageKey, span(cli.Micros(ttl))),
		[]scene{
			{"All masters are up: client A acquires the lock", o.acquire},
			{"Client B wants it too and is refused (ErrHeld), until A releases it", o.contend},
			{"Two masters die: the other three still are a majority", o.loseMinority},
			{"A third dies: the two that are left cannot decide (ErrNoQuorum)", o.loseMajority},
			{"The masters come back: so does the lock", o.recover},
			{"A is paused until its lock is over, B writes, and A wakes up and writes too", o.paused},
			{"Master 3 forgets everything while A has the lock", o.forgetful},
		}, out)
}

// shut makes the masters admit only this demo's clients, and returns the URLs for these. Any
// process can take a dead master's port, such as a master of another demo, and neither demo may use
// the other's masters. A password alone does not ensure that, because a server without one accepts
// any password. A user name does.
func shut(masters *redlocktest.Masters) ([]string, error) {
	const user = "demo"
	password, err := uuid.NewRandom()
	if err != nil {
		return nil, err
	}
	var urls []string
	for _, m := range masters.All() {
		m.Kill() // miniredis reads its users without a lock; another client may be connecting
		m.Miniredis().RequireUserAuth(user, password.String())
		m.SetPassword(password.String()) // RestartEmpty needs it to forget the scripts
		if err := m.Restart(); err != nil {
			return nil, err
		}
		u := url.URL{Scheme: "redis", Host: m.Addr(), User: url.UserPassword(user, password.String())}
		urls = append(urls, u.String())
	}
	return urls, nil
}

// acquire is step 1: all five masters are up, and all five grant.
func (o *outage) acquire(ctx context.Context, s *step) error {
	return o.take(ctx, s, 5, 5)
}

// contend is step 2: B is refused, and a release leaves nothing.
func (o *outage) contend(ctx context.Context, s *step) (err error) {
	b, err := openClient("B", o.urls, redlock.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	_, r, err := b.acquire(ctx, outageKey, o.ttl)
	s.add(r)
	if !errors.Is(err, redlock.ErrHeld) {
		return unwanted(err, redlock.ErrHeld)
	}
	if err := r.wantGrants(0, 0); err != nil {
		return err
	}
	return o.giveUp(ctx, s, 0, 1, 2, 3, 4)
}

// loseMinority is step 3: the loss of a minority changes nothing but the number of grants.
func (o *outage) loseMinority(ctx context.Context, s *step) error {
	o.masters.Kill(3, 4)
	if err := o.take(ctx, s, 3, 3); err != nil {
		return err
	}
	before := o.held.Until()
	r, err := o.a.extend(ctx, o.held, o.ttl)
	s.add(r)
	if err != nil {
		return err
	}
	if err := r.wantGrants(3, 3); err != nil {
		return err
	}
	if o.held.Until().Before(before) {
		return errors.New("extend made the lock's validity shorter")
	}
	return o.giveUp(ctx, s, 0, 1, 2)
}

// loseMajority is step 4: without a majority there is no lock, and no part of one stays.
func (o *outage) loseMajority(ctx context.Context, s *step) error {
	o.masters.Kill(2)
	_, r, err := o.a.acquire(ctx, outageKey, o.ttl)
	s.add(r)
	if !errors.Is(err, redlock.ErrNoQuorum) {
		return unwanted(err, redlock.ErrNoQuorum)
	}
	if dead := r.count(quorum.Failed); dead != 3 {
		return fmt.Errorf("%d masters failed, not 3", dead)
	}
	if err := o.nothingLeft(ctx, 0, 1); err != nil {
		return err
	}
	s.Note = "It means: with three masters lost no majority can come together, so the attempt ended " +
		"at the third failure. What the other two granted, before that or after it, was taken back: no key of it is left. " +
		"Nothing is said about who has the lock. Do not do the work; try again later, or let Acquire wait."
	return nil
}

// recover is step 5: the same client goes on as soon as it can. Three grants prove that, as only
// two masters were left. There need not be five: a master can be up again before the client has
// found out that it was down.
func (o *outage) recover(ctx context.Context, s *step) error {
	if err := o.masters.Restart(2, 3, 4); err != nil {
		return err
	}
	if err := o.take(ctx, s, 3, 5); err != nil {
		return err
	}
	return o.giveUp(ctx, s, 0, 1, 2, 3, 4)
}

// take lets A acquire the lock, with least to most grants.
func (o *outage) take(ctx context.Context, s *step, least, most int) error {
	lock, r, err := o.a.acquire(ctx, outageKey, o.ttl)
	s.add(r)
	if err != nil {
		return err
	}
	o.held = lock
	return r.wantGrants(least, most)
}

// giveUp lets A release the lock, and checks that these masters have no key then.
func (o *outage) giveUp(ctx context.Context, s *step, alive ...int) error {
	r, err := o.a.release(ctx, o.held, 0)
	s.add(r)
	if err != nil {
		return err
	}
	if err := o.nothingLeft(ctx, alive...); err != nil {
		return err
	}
	s.Rounds[len(s.Rounds)-1].Cleared = len(alive)
	return nil
}

// nothingLeft waits until these masters have no key. This takes no longer than the answers under
// way: a caller returns at the decision, and the deletions that follow from it arrive later. It
// looks into the masters' memory.
func (o *outage) nothingLeft(ctx context.Context, alive ...int) error {
	ctx, cancel := context.WithTimeout(ctx, masterlist.NodeTimeout)
	defer cancel()
	for {
		left := ""
		for _, i := range alive {
			if m := o.masters.Master(i); m.Miniredis().Exists(outageKey) {
				left = m.Addr()
			}
		}
		if left == "" {
			return nil
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("a key was left on %s", left)
		}
	}
}
