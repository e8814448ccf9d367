package redlock

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/label"
	"github.com/quorumlock/redlock/internal/slot"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// Config configures a [Redlock]. The zero value is a working configuration.
type Config struct {
	// NodeTimeout is the longest wait for one node in one round. A node that has not answered by
	// then counts as failed. Its connection is still read, so that a late grant is seen and its key
	// deleted. NodeTimeout is absolute, never a part of the ttl: a long ttl must not make a dead
	// node slow (redsync#184). Renewals by KeepAlive and Do may take as long as the lock is still
	// valid, because no caller waits for them.
	//
	// Defaults to 200 ms: far above a round trip between data centres of one region, and short
	// enough that a dead node costs little.
	NodeTimeout time.Duration

	// Drift is the margin for clocks that run at different speeds. It is subtracted from the
	// validity of every grant.
	//
	// Defaults to clock.DefaultDrift, 1 % of the ttl plus 2 ms: 36 s of an hour. For next to no
	// margin, set a Floor of 1 ns.
	Drift clock.Drift

	// KeyPrefix is put in front of every key on the nodes. The keys of the API and in errors are
	// without it. A key with its prefix must not end with redlock:server or redlock:health, or
	// begin with redlock:fence:, redlock:queue:, redlock:queued: or redlock:guard:, because this
	// library keeps keys of its own under these names.
	//
	// Defaults to none.
	KeyPrefix string

	// Fencing gives each lock a token, Lock.FencingToken, that is higher than that of every earlier
	// lock on the key. With it the protected resource can refuse a holder whose lock has been taken
	// over. Package fence has what the resource needs for that. docs/safety.md has the proof and
	// what it assumes. All clients that lock a key must agree on Fencing: locks of clients without
	// it get no token.
	//
	// An acquisition then is a script instead of SET. It takes as many round trips as SET, and a
	// second one if another client's clock is ahead. Beside each key there is a fence in the key's
	// Cluster slot, redlock:fence:{key} for most keys.
	//
	// Defaults to false: an acquisition is SET key value NX PX ttl, as with every other Redlock
	// client.
	Fencing bool

	// FenceRetention is how long a node remembers the highest token of a key after the last
	// acquisition or renewal. When a key was not locked for longer than that, its tokens can go
	// back, if the next client's clock is behind that of the holder before. So FenceRetention must
	// exceed twice the largest difference between the clocks of any two clients, plus the longest
	// ttl. A ttl above it is an error. A client with a shorter retention never makes a node forget
	// a token sooner.
	//
	// Defaults to 7 days, which allows for clocks that are set to the wrong day.
	FenceRetention time.Duration

	// RestartGuard keeps servers that may have forgotten locks out of the vote. Set it to the
	// longest ttl that any client uses with these nodes, or to more where nodes fail over (below);
	// 0 is off.
	//
	// The votes of such a server do not count until the locks that it may have forgotten would have
	// expired. It is a server that has been up for less than RestartGuard, or that took another
	// server's place at its address less than RestartGuard ago, or that is a replica. So a master
	// that restarts without its memory lets no second holder in, nor does a replica that is
	// promoted before it has heard of a lock. Such a node is in quarantine, as its errors and
	// Redlock.Nodes report. docs/safety.md says what the guard cannot see.
	//
	// With nodes that fail over, as Sentinel's and Cluster's do, RestartGuard must exceed the
	// longest ttl by min-replicas-max-lag and two seconds: a deposed master can grant locks for
	// that long after its replica was promoted. Without min-replicas-to-write it can do so for as
	// long as clients reach it, and no guard helps.
	//
	// RestartGuard costs four small commands, which go in front of others for each new connection
	// and once a second. It costs no round trip. It keeps an identity record on each node: the key
	// redlock:server after KeyPrefix. From this record a client that starts later learns of a
	// promotion. The user needs the rights (ACL: +info +get +set +time). A ttl above RestartGuard
	// is an error.
	//
	// When the first client with a guard meets a server, the server is in quarantine if it was once
	// a replica, has another server's record, or has been up for less than RestartGuard. The first
	// deployment on such servers has no quorum for one RestartGuard.
	//
	// Defaults to 0. One server that is listed as two nodes is found with or without the guard,
	// wherever INFO is permitted.
	RestartGuard time.Duration

	// Fair makes Acquire join the queue of a key if there is one, so that no caller takes a lock
	// ahead of the waiters. The first attempt, also that of TryAcquire, takes a free key only if
	// its queue is empty. All clients that lock a key should agree on Fair.
	//
	// Defaults to false: the first attempt is SET NX, as with every other Redlock client. It takes
	// the key if it arrives after a release and before the waiter that the release woke.
	Fair bool

	// Reentrant lets an acquisition join a lock that its context carries: Acquire, TryAcquire and
	// Do return, or run with, a nested lock if ctx carries a live lock of this Redlock on the key.
	// A nested lock waits for nobody, and mostly asks no node. So a function that locks a key can call
	// another that locks the same key. A context carries a lock if it is, or is derived from, the
	// context of the function that Do runs, or Lock.Context.
	//
	// A nested lock has the Value, the FencingToken and the Until of the outer one:
	//
	//   - If its ttl is longer than the outer one's, or if less than two thirds of its ttl are left
	//     until Until, the outer lock is extended by a round trip. If that fails, the acquisition
	//     fails with a *QuorumError that has Extend's reason and the Op "acquire". There is then no
	//     nested lock, and the outer one is as Extend leaves it.
	//   - Its Release ends the nested lock alone, and asks no node. It returns nil if the outer lock
	//     is valid as far as this process knows. The outer lock's next renewal, Extend or Release
	//     reports a loss that was not found before.
	//   - The end of the outer lock, by Release, loss or Close, ends the nested one in the same step.
	//     The Release of a nested lock that has ended so returns the cause, and Do never returns nil
	//     then.
	//   - After its KeepAlive, as in Do, the outer lock is renewed until the nested one ends; after
	//     that, only if KeepAlive was called on the outer lock itself. If several of the locks are
	//     kept alive, renewals ask for the longest of their ttls, every third of the shortest.
	//   - A lock that is nested in a nested lock joins the outermost one. It outlives the Release of
	//     the one in the middle.
	//   - Its ReleaseAfter and Detach are errors that change nothing.
	//
	// Goroutines that share the context share the lock, so they do not exclude each other: two
	// goroutines under one Do can both run in a nested Do at the same time. To have them exclude
	// each other, use a mutex, or a context without the lock. Two Redlocks exclude each other, also in
	// one process: a lock of one does not count for the other.
	//
	// Defaults to false: such an acquisition fails with ErrReentrant at once.
	Reentrant bool

	// Owner is the holder's name for people. Inspect and the command redlock status show it, together
	// with the time of the acquisition. It is a part of each value, behind the random part, so every
	// user with the right to read the keys can read it. It does not decide which client holds a lock,
	// and many clients may have the same. It has at most 128 bytes of UTF-8, without control
	// characters and others that cannot be printed.
	//
	// Defaults to the name of the host and the id of the process: "web-3 pid 4711".
	Owner string

	// Clock measures every duration that the lock depends on.
	//
	// Defaults to clock.System.
	Clock clock.Clock

	// Rand is the source of the values that identify a key's owner, and of the random pauses of
	// Acquire. If an attacker can guess a value, it can release the lock, so Rand must be fit for
	// cryptography. For a simulation that is to be repeated, use a source with a seed. One
	// goroutine at a time reads Rand, and reads no byte before it is needed, so that a cloned
	// machine shares no value with its original.
	//
	// Defaults to crypto/rand.Reader.
	Rand io.Reader

	// Observer, if set, receives reports of acquisitions, waits, losses, votes and quarantines. Package
	// redlockotel has one for OpenTelemetry. Stats counts the same without an Observer. With an Observer,
	// a release or clean-up that waits for a silent node keeps the context of its caller in memory.
	//
	// Defaults to none.
	Observer Observer

	// Trace, if set, is called once for every round after the last node has answered or has been
	// given up. That may be after the operation has returned: a pending delivery, such as a
	// release's, may take until the ttl is over. Trace is called on a goroutine of its own, one
	// call at a time. If it is too slow, calls are dropped. A panic or a runtime.Goexit in it ends
	// that call alone.
	//
	// Defaults to none.
	Trace func(Trace)

	// Logger, if set, gets warnings of lost locks, of renewals that failed, of waits that find no
	// quorum, and of nodes that are quarantined, that are one server, or that do not let the client
	// queue. Each record has an attribute "event" that names it for programs. The others are "key",
	// "node", "server", "cause", "error", and durations: docs/observability.md lists them. No record
	// has a value of a lock or a password. Logger is called on the same goroutine as Trace, under the
	// same terms.
	//
	// Defaults to none.
	Logger *slog.Logger
}

const (
	defaultNodeTimeout    = 200 * time.Millisecond
	defaultFenceRetention = 7 * 24 * time.Hour

	// minTTL is the shortest ttl. Below it the margin of 2 ms, Redis' expiry in whole milliseconds
	// and the delays of the scheduler are about as long as the lock.
	minTTL = 10 * time.Millisecond

	// minRoundTrip must be left of a ttl after its drift. It is an ordinary round trip in a local
	// network.
	minRoundTrip = time.Millisecond
)

func (c Config) withDefaults() Config {
	if c.NodeTimeout == 0 {
		c.NodeTimeout = defaultNodeTimeout
	}
	if c.FenceRetention == 0 {
		c.FenceRetention = defaultFenceRetention
	}
	if c.Drift == (clock.Drift{}) {
		c.Drift = clock.DefaultDrift
	}
	if c.Owner == "" {
		c.Owner = label.Default()
	}
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	return c
}

func (c Config) validate() error {
	if c.NodeTimeout < 0 {
		return fmt.Errorf("redlock: Config.NodeTimeout %v is negative", c.NodeTimeout)
	}
	if c.FenceRetention != 0 && c.FenceRetention < minTTL {
		return fmt.Errorf("redlock: Config.FenceRetention %v is below %v", c.FenceRetention, minTTL)
	}
	if c.RestartGuard != 0 && c.RestartGuard < minTTL {
		return fmt.Errorf("redlock: Config.RestartGuard %v is below the shortest ttl, %v", c.RestartGuard, minTTL)
	}
	if err := label.Check(c.Owner); err != nil {
		return fmt.Errorf("redlock: Config.Owner %w", err)
	}
	if c.Logger != nil && c.Logger.Handler() == nil {
		return errors.New("redlock: Config.Logger has no handler; make it with slog.New")
	}
	if c.Clock != nil && !ticks(c.Clock) {
		return fmt.Errorf("redlock: Config.Clock is a %T that cannot tell the time", c.Clock)
	}
	if err := c.Drift.Validate(); err != nil {
		return fmt.Errorf("redlock: Config.%w", err)
	}
	return nil
}

// ticks reports whether the clock works. A nil pointer in the interface panics here, and not in a
// goroutine of ours.
func ticks(c clock.Clock) (ok bool) {
	defer func() { ok = recover() == nil }()
	c.Now()
	return
}

// checkTTL returns the ttl that the nodes will use, or an error if ttl is out of range. Redis keeps
// whole milliseconds. The fraction that it cuts off must not count as validity.
func (c Config) checkTTL(ttl time.Duration) (time.Duration, error) {
	if ttl < minTTL {
		return 0, fmt.Errorf("redlock: ttl %v is below %v", ttl, minTTL)
	}
	if c.RestartGuard > 0 && ttl > c.RestartGuard {
		return 0, fmt.Errorf("redlock: ttl %v is above Config.RestartGuard, %v", ttl, c.RestartGuard)
	}
	if c.Fencing && ttl > c.FenceRetention {
		return 0, fmt.Errorf("redlock: ttl %v is above Config.FenceRetention, %v", ttl, c.FenceRetention)
	}
	ttl = ttl.Truncate(time.Millisecond)
	if clock.Validity(ttl, minRoundTrip, c.Drift) <= 0 {
		return 0, fmt.Errorf("redlock: ttl %v leaves no validity after a drift of %v and a round trip of %v",
			ttl, c.Drift.Of(ttl), minRoundTrip)
	}
	return ttl, nil
}

// checkKey returns an error for the empty key, which is an unset variable of the caller's, and for
// a key that this library may use for another purpose.
func (c Config) checkKey(key string) error {
	switch {
	case key == "":
		return errors.New("redlock: key is empty")
	case protocol.Reserved(c.KeyPrefix + key):
		return fmt.Errorf("redlock: key %q is reserved: behind Config.KeyPrefix it is one of …%s, …%s, %s…, %s…, %s… and %s…, which this library keeps for itself",
			errs.Short(key), protocol.RecordKey, protocol.HealthKey, slot.FencePrefix, slot.QueuePrefix, slot.FlagPrefix, slot.GuardPrefix)
	}
	return nil
}
