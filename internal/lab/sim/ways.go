package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/redlock"
)

// This file has the other ways to hold a lock: ReleaseAfter, handles that another client resumes,
// and locks that are nested by their context. election.go has elections. The rules for them:
//
//   - Exclusion: nobody gets a key before the time of a ReleaseAfter that returned nil is over,
//     even if its client has died (history.Retained).
//   - Owner: a resumed lock creates no key, and touches nobody else's.
//   - Fencing: a resumed lock has the token of an earlier one.
//   - Told: a nested lock has the value of the outer one, which lives on after the release of the
//     nested one; without Config.Reentrant there is ErrReentrant.
//
// All other rules hold as well.

// drawWays decides whether clients use these ways. If the kinds of faults are given, they do so only
// if the config says so: a run for one kind shows more without them.
func (p *Plan) drawWays() {
	r := stream(p.Config.Seed, "ways")
	p.Ways = p.Config.Ways.or(r, 2) && (p.Config.Faults == nil || p.Config.Ways == On)
	for i := range p.Clients {
		p.Clients[i].Reentrant = r.IntN(2) == 0 // which only matters with Ways
	}
}

// giveUpOtherwise ends some locks in another way than by a release, and reports whether it has.
func (c *client) giveUpOtherwise(r *rand.Rand, l *redlock.Lock, op int) bool {
	if !c.w.plan.Ways {
		return false
	}
	switch r.IntN(4) {
	case 0:
		c.releaseAfter(r, l, op)
		return true
	case 1:
		if c.w.plan.Long {
			return false // a handle that nobody resumes keeps its key for too long
		}
		return c.handOver(r, l, op)
	}
	return false
}

// releaseAfter leaves the key taken. The client's own clock counts the time.
func (c *client) releaseAfter(r *rand.Rand, l *redlock.Lock, op int) {
	d := min(exp(r, 200*time.Millisecond), longest/2)
	c.drop(op)
	c.sayOf(history.Releasing, op, l, nil)
	began := c.w.now()
	until := began + c.clock.until(c.clock.Now().Add(d))
	err := l.ReleaseAfter(background, d)
	c.w.prompt(c, "release after", op, l.Key(), began, 1, 0)
	if err != nil {
		c.say(history.Released, op, l.Key(), 0, err)
	} else {
		c.say(history.Retained, op, l.Key(), until, nil)
	}
	c.gate()
}

// parcel is a handle on its way to another client.
type parcel struct{ handle, key, value string }

// handOver sends the lock to another client, or to this one. It returns false if the lock has ended.
func (c *client) handOver(r *rand.Rand, l *redlock.Lock, op int) bool {
	began := c.w.now()
	handle, err := l.Detach()
	c.w.prompt(c, "detachment", op, l.Key(), began, 1, 0)
	if err != nil {
		return false
	}
	c.drop(op)
	if !c.gone() { // the lock has ended at the call
		c.w.add(history.Event{At: began, Kind: history.Detached, Client: c.index + 1, Op: op, Key: l.Key()})
	}
	to := c.w.clients[r.IntN(len(c.w.clients))]
	to.mu.Lock()
	to.box = append(to.box, parcel{handle, l.Key(), l.Value()})
	to.mu.Unlock()
	c.gate()
	return true
}

// takeParcel resumes a lock that another client has sent. It returns false if there is none.
func (c *client) takeParcel(r *rand.Rand) bool {
	c.mu.Lock()
	if len(c.box) == 0 {
		c.mu.Unlock()
		return false
	}
	p := c.box[0]
	c.box = c.box[1:]
	c.mu.Unlock()
	ttls := c.w.plan.Clients[c.index].TTLs
	op := c.beginBy(p.key, history.ByHandle)
	c.w.own(p.value, c.index, op)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	if slices.Contains(c.w.plan.Kinds, Cancel) && r.IntN(3) == 0 {
		defer c.clock.AfterFunc(exp(r, 5*time.Millisecond), cancel).Stop()
	}
	began := c.w.now()
	l, err := c.lock.Resume(ctx, p.handle, pick(r, ttls...))
	c.w.prompt(c, "resumption", op, p.key, began, 2, 0)
	if err != nil {
		c.say(history.Denied, op, p.key, 0, err)
		c.gate()
		return true
	}
	c.grantedBy(history.ByHandle, op, l)
	c.gate()
	c.hold(r, l, op, ttls)
	return true
}

// nest acquires the key of a lock again, with the lock's context.
func (c *client) nest(r *rand.Rand, l *redlock.Lock, op int, ttl time.Duration) {
	if !c.w.plan.Ways {
		return
	}
	ask := c.lock.TryAcquire
	if r.IntN(2) == 0 {
		ask = c.lock.Acquire
	}
	wrong := func(format string, args ...any) {
		if !c.gone() {
			c.w.report(history.Violation{At: c.w.now(), Rule: Told, Key: l.Key(), Text: fmt.Sprintf("client %d's lock #%d, nested: ", c.index+1, op) + fmt.Sprintf(format, args...)})
		}
	}
	reentrant := c.w.plan.Clients[c.index].Reentrant
	inner := c.begin(l.Key(), false)
	nested, err := ask(l.Context(), l.Key(), ttl)
	valid := l.Valid()
	switch {
	case err != nil:
		c.say(history.Denied, inner, l.Key(), 0, err)
		if valid && errors.Is(err, redlock.ErrReentrant) == reentrant && !errors.Is(err, redlock.ErrNoQuorum) && !errors.Is(err, redlock.ErrNotHeld) && !errors.Is(err, redlock.ErrExpired) {
			wrong("Reentrant is %v, and the error is: %v", reentrant, err)
		}
		return
	case nested.Value() != l.Value():
		if valid {
			wrong("another lock was granted beside it")
		}
		c.granted(inner, nested)
		c.release(background, nested, inner)
		return
	}
	c.say(history.Denied, inner, l.Key(), 0, errNested)
	c.sayOf(history.Renewed, op, l, nil) // a longer ttl may have extended it
	if !reentrant {
		wrong("Reentrant is off, and a lock was granted")
	}
	if r.IntN(2) == 0 {
		nested.KeepAlive()
	}
	c.sleep(nested.Context(), exp(r, ttl/2))
	valid = l.Valid()
	released := nested.Release(background)
	if (released == nil) != valid && (released == nil) != l.Valid() {
		wrong("the outer lock is valid: %v; the release of the nested one says: %v", valid, released)
	}
	if left := l.Until().Sub(c.clock.Now()); valid && !l.Valid() && left > time.Millisecond {
		wrong("its release ended the outer lock, which had %v left", left)
	}
}

// errNested says in the history that an acquisition led to a nested lock.
var errNested = errors.New("nested in the lock that its context carries")
