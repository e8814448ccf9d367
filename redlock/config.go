package redlock

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/slot"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// Config tunes a [Redlock]. The zero value is a working configuration.
type Config struct {
	// NodeTimeout is the longest wait for one node in one round. A node that
	// has not answered by then counts as failed; its connection is read on, so
	// that a late grant is seen and taken back. It is absolute, never a part
	// of the ttl: a long ttl must not make a dead node slow (redsync#184).
	// Renewals by KeepAlive and Do keep nobody waiting: they may take the validity
	// that is left.
	//
	// Defaults to 200 ms: far above a round trip between data centres of one
	// region, and short enough to lose nothing worth having on a dead node.
	NodeTimeout time.Duration

	// Drift is the margin for clocks that run at different speeds. It is
	// taken off the validity of every grant.
	//
	// Defaults to clock.DefaultDrift, 1 % of the ttl plus 2 ms: 36 s of an
	// hour. Set a Floor of 1 ns to have next to none.
	Drift clock.Drift

	// KeyPrefix is put in front of every key on the nodes. The keys of the
	// API and in errors are without it. With it a key must not end with redlock:server
	// or begin with redlock:fence:, redlock:queue:, redlock:queued: or redlock:guard:,
	// under which this library keeps its own.
	//
	// Defaults to none.
	KeyPrefix string

	// Fencing hands out a token with each lock, Lock.FencingToken, that is higher
	// than that of every earlier lock on the key, so that the protected resource can
	// refuse a holder whose lock has been taken over; package fence has what it needs
	// for that. docs/safety.md has the proof and what it assumes. All clients that
	// lock a key must agree on it: locks of those without get no token.
	//
	// An acquisition then is a script instead of SET, takes as many round trips, and a
	// second one if another client's clock is ahead. Beside each key there is a fence,
	// redlock:fence:{key} for most, in the key's Cluster slot.
	//
	// Defaults to false: an acquisition is SET key value NX PX ttl, as with every other
	// Redlock client.
	Fencing bool

	// FenceRetention is how long a node remembers the highest token of a key after the
	// last acquisition or renewal. Tokens can go back when a key was not locked for
	// longer than that, by a client whose clock is behind that of the holder before. So
	// it must exceed twice the most that the clocks of any two clients disagree, plus
	// the longest ttl; a ttl above it is an error. A node never forgets a token sooner
	// because a client with a shorter retention came later.
	//
	// Defaults to 7 days, which allows for clocks that are set to the wrong day.
	FenceRetention time.Duration

	// RestartGuard is the longest ttl that any client uses with these nodes, or more where
	// nodes fail over (below); 0 is off.
	// With it the votes of a server that may have forgotten locks do not count until
	// those locks would have expired: of one that has been up for less long than that,
	// of one that took another's place behind its address, and of a replica. So a
	// master that restarts without its memory, or a replica that is promoted without
	// having heard of a lock, lets no second holder in. Such a node is in quarantine,
	// which its errors and Redlock.Nodes tell. docs/safety.md says what the guard
	// cannot see.
	//
	// With nodes that fail over, as Sentinel's and Cluster's do, RestartGuard must be
	// longer than the longest ttl, by min-replicas-max-lag and two seconds: a deposed
	// master can grant locks for that long after its replica was promoted. Without
	// min-replicas-to-write it can for as long as clients reach it, and no guard helps.
	//
	// RestartGuard costs four small commands in front of others, for each new connection
	// and once a second, and no round trip. It keeps an identity record on each node, the
	// key redlock:server after KeyPrefix, by which a client that starts later knows of a
	// promotion. The user needs the rights (ACL: +info +get +set +time). A ttl above the
	// guard is an error.
	//
	// A server that was once a replica, or that has another server's record, is in
	// quarantine when the first client with a guard meets it, and so is a server that has
	// been up for less long than the guard. The first deployment on such servers has no
	// quorum for one RestartGuard.
	//
	// Defaults to 0. One server that is listed as two nodes is found either way,
	// wherever INFO is permitted.
	RestartGuard time.Duration

	// Fair has a newcomer join the queue of a key if there is one, so that nobody takes
	// a lock ahead of those who wait: its first attempt, also that of TryAcquire, asks
	// for a free key that nobody waits for. All clients that lock a key should agree.
	//
	// Defaults to false: the first attempt is SET NX, as with every other Redlock
	// client. It takes the key if it arrives after a release and before the waiter that the
	// release woke.
	Fair bool

	// Clock tells the time, for every duration that the lock depends on.
	//
	// Defaults to clock.System.
	Clock clock.Clock

	// Rand is where the values come from that say who owns a key, and the random
	// pauses of Acquire. Who can guess a value can release the lock, so it must
	// be fit for cryptography; a simulation that is to be repeated gives one
	// with a seed. It is read by one goroutine at a time, and no byte ahead of its
	// use, so that a cloned machine shares no value with its original.
	//
	// Defaults to crypto/rand.Reader.
	Rand io.Reader

	// Trace, if set, is called once for every round after the last node has
	// answered or has been given up. That may be after the operation has
	// returned; what is owed to a node, a release for one, may take until the
	// ttl is over. It runs on a goroutine of its own, one call at a time;
	// what a slow one cannot keep up with is dropped. A panic or a runtime.Goexit in it
	// ends that call alone.
	//
	// Defaults to none.
	Trace func(Trace)

	// Logger is told of lost locks, of renewals that failed, and of waits that
	// find no quorum; never of a value. It runs on the same goroutine as Trace,
	// under the same terms.
	//
	// Defaults to silence.
	Logger *slog.Logger
}

const (
	defaultNodeTimeout    = 200 * time.Millisecond
	defaultFenceRetention = 7 * 24 * time.Hour

	// minTTL is the shortest ttl: below it the margin of 2 ms, expiry in whole
	// milliseconds and the scheduler's noise are of the size of the lock.
	minTTL = 10 * time.Millisecond

	// minRoundTrip is the least that must be left of a ttl beside its drift: an
	// ordinary round trip in a local network.
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

// ticks tries the clock: a nil pointer in an interface panics here, and not in a
// goroutine of ours.
func ticks(c clock.Clock) (ok bool) {
	defer func() { ok = recover() == nil }()
	c.Now()
	return
}

// checkTTL returns the ttl as the nodes will have it: Redis keeps whole
// milliseconds, and a part that it cuts off must not count as validity.
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

// checkKey refuses the empty key, which is a caller's variable that was not set, and a key
// that this library keeps something else under.
func (c Config) checkKey(key string) error {
	switch {
	case key == "":
		return errors.New("redlock: key is empty")
	case protocol.Reserved(c.KeyPrefix + key):
		return fmt.Errorf("redlock: key %q is reserved: behind Config.KeyPrefix it is one of …%s, %s…, %s…, %s… and %s…, which this library keeps for itself",
			errs.Short(key), protocol.RecordKey, slot.FencePrefix, slot.QueuePrefix, slot.FlagPrefix, slot.GuardPrefix)
	}
	return nil
}
