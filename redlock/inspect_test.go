package redlock_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/spy"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// fingerprint returns the name that an inspection gives a value.
func fingerprint(value string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(value)))[:8]
}

func TestInspectAFreeKey(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		i := b.Inspect(b.Redlock)
		assert.Equal(b, redlock.VerdictFree, i.Verdict())
		holder, on := i.Holder()
		assert.Empty(b, holder)
		assert.Zero(b, on)
		for _, n := range i.Nodes {
			assert.Equal(b, redlock.NodeInspection{Addr: n.Addr}, n)
			assert.Empty(b, n.Value())
		}
		for m := range 3 {
			assert.Empty(b, b.Redis(m).Keys(), "it changes nothing")
		}
	})
}

func TestInspectALock(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{Fencing: true}, func(b *virtual.Bed) {
		holder := b.ReadyParty(redlock.Config{Fencing: true})
		l := b.Hold(holder, time.Hour)
		queue := b.WaitInTurn(b.ReadyParties(2, redlock.Config{Fencing: true}), key, 50*time.Millisecond)
		time.Sleep(time.Minute)
		before := dump(b)
		i := b.Inspect(b.Redlock)
		assert.Equal(b, before, dump(b), "it changes nothing")
		assert.Equal(b, redlock.VerdictHeld, i.Verdict())
		who, on := i.Holder()
		assert.Equal(b, fingerprint(l.Value()), who)
		assert.Equal(b, 3, on)
		for _, n := range i.Nodes {
			assert.NoError(b, n.Err)
			assert.Equal(b, who, n.Holder)
			assert.Equal(b, l.Value(), n.Value())
			assert.InDelta(b, 59*time.Minute, n.TTL, float64(time.Second))
			assert.Equal(b, 2, n.Waiting)
			assert.Equal(b, l.FencingToken(), n.Fence)
		}
		b.Release(l)
		virtual.Finish(b, queue...)
		i = b.Inspect(b.Redlock)
		assert.Equal(b, redlock.VerdictFree, i.Verdict())
		assert.Greater(b, i.Nodes[0].Fence, l.FencingToken(), "a fence outlives its lock")
		assert.Zero(b, i.Nodes[0].Waiting)
	})
}

// dump returns all keys and values of the nodes, with their ttls.
func dump(b *virtual.Bed) (all []string) {
	for m := range b.Masters.Len() {
		for _, key := range b.Redis(m).Keys() {
			if strings.HasPrefix(key, "redlock:queue:") { // a set has no text
				members, err := b.Redis(m).SortedSet(key)
				require.NoError(b, err)
				all = append(all, fmt.Sprint(m, key, members))
				continue
			}
			value, err := b.Redis(m).Get(key)
			require.NoError(b, err)
			all = append(all, fmt.Sprint(m, key, value, b.Redis(m).TTL(key)))
		}
	}
	return all
}

// The verdicts on the nodes' answers. A letter is a value, - a free key, T a key of another type, !
// a node that does not answer.
func TestInspectVerdicts(t *testing.T) {
	for nodes, want := range map[string]redlock.Verdict{
		"A": redlock.VerdictHeld, "-": redlock.VerdictFree, "!": redlock.VerdictUnknown, "T": redlock.VerdictForeign,
		"AAA": redlock.VerdictHeld, "AA-": redlock.VerdictHeld, "AA!": redlock.VerdictHeld, "AAT": redlock.VerdictHeld,
		"--A": redlock.VerdictFree, "--!": redlock.VerdictFree, "--T": redlock.VerdictFree,
		"ABC": redlock.VerdictSplit, "AB-": redlock.VerdictSplit, "A-T": redlock.VerdictSplit, "ATT": redlock.VerdictForeign,
		"A!-": redlock.VerdictUnknown, "A!B": redlock.VerdictUnknown, "A!!": redlock.VerdictUnknown, "!TA": redlock.VerdictUnknown,
		"AABB!": redlock.VerdictUnknown, "AAB-!": redlock.VerdictUnknown, "ABCD!": redlock.VerdictSplit, "AB--!": redlock.VerdictUnknown,
		"AAB--": redlock.VerdictSplit, "TT-AB": redlock.VerdictSplit, "BAABA": redlock.VerdictHeld, "!!---": redlock.VerdictFree,
		"AABB": redlock.VerdictSplit, "AA--": redlock.VerdictSplit, "AAA-": redlock.VerdictHeld, "A---": redlock.VerdictFree,
		"TT!": redlock.VerdictForeign, "TTTA-": redlock.VerdictForeign, "TTA-": redlock.VerdictForeign, "TTA!-": redlock.VerdictSplit,
	} {
		virtual.Run(t, len(nodes), redlock.Config{}, func(b *virtual.Bed) {
			lay(b, nodes)
			start := time.Now()
			i := b.Inspect(b.Redlock)
			assert.Equal(b, want, i.Verdict(), nodes)
			if strings.Contains(nodes, "!") {
				assert.Equal(b, virtual.NodeTimeout, time.Since(start), "all are waited for, and not for longer")
			} else {
				assert.Zero(b, time.Since(start))
			}
			who, on := i.Holder()
			if want == redlock.VerdictHeld {
				assert.Equal(b, fingerprint(laid("A")), who, nodes)
				assert.Equal(b, strings.Count(nodes, "A"), on, nodes)
			} else {
				assert.Empty(b, who, nodes)
				assert.Zero(b, on)
			}
			for m, n := range i.Nodes {
				switch nodes[m] {
				case '-':
					assert.Equal(b, redlock.NodeInspection{Addr: n.Addr}, n)
				case '!':
					assert.ErrorContains(b, n.Err, "no answer within 200ms")
					assert.Empty(b, n.Value())
				case 'T':
					assert.EqualError(b, n.Err, "has a list under this key, which is not a lock")
					assert.ErrorIs(b, n.Err, redlock.ErrForeign)
					assert.Equal(b, "it is a list", n.Foreign())
					assert.Empty(b, n.Value())
				default:
					assert.Equal(b, laid(nodes[m:m+1]), n.Value())
					assert.Empty(b, n.Foreign())
				}
			}
			for m := range nodes {
				b.Masters.Master(m).Resume()
			}
		})
	}
	assert.Equal(t, "unknown free held split foreign Verdict(9)", fmt.Sprint(redlock.VerdictUnknown, redlock.VerdictFree, redlock.VerdictHeld, redlock.VerdictSplit, redlock.VerdictForeign, redlock.Verdict(9)))
}

// laid returns the value of a lock that a test recognizes by its letter.
func laid(letter string) string { return letter + "0000000-0000-4000-8000-000000000000" }

// lay puts the nodes into a state, as TestInspectVerdicts writes it.
func lay(b *virtual.Bed, nodes string) {
	b.Helper()
	for m, state := range nodes {
		switch state {
		case '-':
		case '!':
			b.Masters.Master(m).Stall()
		case 'T':
			_, err := b.Redis(m).Push(key, "a list")
			require.NoError(b, err)
		default:
			require.NoError(b, b.Redis(m).Set(key, laid(string(state))))
			b.Redis(m).SetTTL(key, time.Minute)
		}
	}
}

// A key without an expiry belongs to a foreign client. Its value may even be empty.
func TestInspectAForeignKey(t *testing.T) {
	virtual.Run(t, 1, redlock.Config{}, func(b *virtual.Bed) {
		b.Steal(key, 0, 0)
		n := b.Inspect(b.Redlock).Nodes[0]
		assert.Equal(b, fingerprint("somebody else"), n.Holder)
		assert.Negative(b, n.TTL)
		assert.Equal(b, "its value is no UUID, and it never expires", n.Foreign())
		b.Redis(0).SetTTL(key, time.Minute)
		assert.Equal(b, "its value is no UUID", b.Inspect(b.Redlock).Nodes[0].Foreign())
		require.NoError(b, b.Redis(0).Set(key, laid("A")))
		assert.Equal(b, "it never expires", b.Inspect(b.Redlock).Nodes[0].Foreign())
		require.NoError(b, b.Redis(0).Set(key, ""))
		i := b.Inspect(b.Redlock)
		assert.Equal(b, redlock.VerdictHeld, i.Verdict())
		assert.Equal(b, fingerprint(""), i.Nodes[0].Holder)
		require.NoError(b, b.Redis(0).Set("redlock:fence:{orders}", "no number"))
		_, err := b.Redis(0).Push("redlock:queue:{orders}", "no queue")
		require.NoError(b, err)
		n = b.Inspect(b.Redlock).Nodes[0]
		assert.EqualValues(b, -1, n.Fence)
		assert.EqualValues(b, -1, n.Waiting)
		b.Redis(0).Del(key)
		assert.Equal(b, redlock.VerdictFree, b.Inspect(b.Redlock).Verdict())
	})
}

// A waiter that was woken and has not come yet has two entries in the queue, and counts once.
func TestInspectCountsWaiters(t *testing.T) {
	virtual.Run(t, 1, redlock.Config{}, func(b *virtual.Bed) {
		now := time.Now()
		for who, score := range map[string]int64{"one orders": now.UnixMicro(), "two orders": now.UnixMicro() + 1, "@one orders": now.UnixMilli()} {
			_, err := b.Redis(0).ZAdd("redlock:queue:{orders}", float64(score), who)
			require.NoError(b, err)
		}
		assert.Equal(b, 2, b.Inspect(b.Redlock).Nodes[0].Waiting)
	})
}

// The key on the nodes is the one that locks use, with its prefix, braces and all.
func TestInspectFindsTheQueueAndTheFence(t *testing.T) {
	for _, name := range []string{"orders", "{orders}:7", "or}ders", "redlock:queued:x"} {
		virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
			cfg := redlock.Config{Fencing: true, KeyPrefix: "app:"}
			holder, waits := b.NewRedlock(cfg), b.NewParty(cfg)
			l, err := holder.TryAcquire(ctx, name, time.Hour)
			require.NoError(b, err)
			b.Settle()
			w := waits.Wait(name, time.Hour)
			time.Sleep(time.Second)
			i, err := waits.Inspect(ctx, name)
			require.NoError(b, err)
			assert.Equal(b, name, i.Key)
			for _, n := range i.Nodes {
				assert.Equal(b, l.Value(), n.Value(), name)
				assert.Equal(b, 1, n.Waiting, name)
				assert.Equal(b, l.FencingToken(), n.Fence, name)
			}
			require.NoError(b, l.Release(ctx))
			require.NoError(b, w.Hold().Release(ctx))
		})
	}
}

func TestInspectADeadMinority(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, time.Minute)
		b.Settle()
		b.Masters.Kill(1, 4)
		i := b.Inspect(b.Redlock)
		assert.Equal(b, redlock.VerdictHeld, i.Verdict())
		assert.ErrorContains(b, i.Nodes[1].Err, "connection lost")
		i = b.Inspect(b.Redlock)
		assert.ErrorContains(b, i.Nodes[4].Err, "refused")
		_, on := i.Holder()
		assert.Equal(b, 3, on)
		require.NoError(b, l.Release(ctx))
	})
}

// A node in quarantine has no vote, but reports its values.
func TestInspectAQuarantinedNode(t *testing.T) {
	virtual.Run(t, 3, virtual.Guarded, func(b *virtual.Bed) {
		l := b.Take(b.Redlock)
		b.Settle()
		require.NoError(b, b.Masters.Restart(0, 1)) // with their memory
		b.Inspect(b.Redlock)                        // finds the broken connections
		i := b.Inspect(b.Redlock)
		require.ErrorContains(b, b.Redlock.Nodes()[0].Servers[0].Err, "quarantined")
		assert.Equal(b, redlock.VerdictHeld, i.Verdict())
		for _, n := range i.Nodes {
			assert.Equal(b, l.Value(), n.Value())
		}
		_ = l.Release(ctx)
	})
}

// One server that is listed twice is counted once.
func TestInspectADuplicate(t *testing.T) {
	virtual.Run(t, 2, redlock.Config{}, func(b *virtual.Bed) {
		one := b.Masters.Master(0)
		r, err := redlock.New([]redis.UniversalClient{one.Client(), one.Client(), b.Masters.Master(1).Client()}, redlock.Config{})
		require.NoError(b, err)
		defer func() { require.NoError(b, r.Close()) }()
		b.Steal(key, time.Minute, 0)
		for range 2 {
			i, err := r.Inspect(ctx, key)
			require.NoError(b, err)
			assert.Equal(b, redlock.VerdictUnknown, i.Verdict())
			duplicates := slices.DeleteFunc(i.Nodes, func(n redlock.NodeInspection) bool { return !errors.Is(n.Err, redlock.ErrDuplicateNode) })
			assert.Len(b, duplicates, 1)
		}
	})
}

// Values are never printed, not by hooks of the clients that print every command and its reply, nor
// by a Trace.
func TestInspectHidesTheValues(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		var said spy.Log
		listen := spy.After(func(cmd redis.Cmder) { fmt.Fprintln(&said, cmd) })
		client := b.Masters.Master(0).Client()
		client.AddHook(listen)
		r, err := redlock.New([]redis.UniversalClient{client}, redlock.Config{Trace: func(tr redlock.Trace) { fmt.Fprintf(&said, "%+v", tr) }})
		require.NoError(b, err)
		l := b.Acquire(key, time.Minute)
		b.Settle()
		for range 2 {
			i, err := r.Inspect(ctx, key)
			require.NoError(b, err)
			require.Equal(b, l.Value(), i.Nodes[0].Value())
			wrapped := struct {
				I *redlock.Inspection
				n redlock.NodeInspection
			}{i, i.Nodes[0]}
			for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
				for _, what := range []any{i, *i, i.Nodes[0], &i.Nodes[0], wrapped} {
					text := fmt.Sprintf(format, what)
					assert.NotContains(b, text, l.Value(), format)
					assert.NotContains(b, text, fmt.Sprintf("%x", l.Value()), format)
				}
			}
			text, err := json.Marshal(wrapped)
			require.NoError(b, err)
			assert.Contains(b, string(text), fingerprint(l.Value()))
			fmt.Fprintf(&said, "%s\n", text)
			slog.New(slog.NewJSONHandler(&said, nil)).Info("seen", "inspection", i, "node", i.Nodes[0])
			said.Logger().Info("seen", "inspection", i, "node", i.Nodes[0])
		}
		require.NoError(b, r.Close())
		assert.Equal(b, 2, said.Says("eval"))
		assert.Equal(b, 2, said.Says("Op:inspect"))
		assert.Zero(b, said.Says(l.Value()))
		require.NoError(b, l.Release(ctx))
	})
}

func TestInspectEndsEarly(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		gone, cancel := context.WithCancelCause(ctx)
		why := errors.New("why")
		cancel(why)
		_, err := b.Redlock.Inspect(gone, key)
		assert.ErrorIs(b, err, why)
		assert.EqualError(b, err, `redlock: inspect "orders": why`)
		assert.Empty(b, b.Commands(0))

		b.Inspect(b.Redlock) // makes its connections
		b.Stall(2)
		soon, cancelled := context.WithTimeoutCause(ctx, 20*time.Millisecond, why)
		defer cancelled()
		start := time.Now()
		_, err = b.Redlock.Inspect(soon, key)
		assert.ErrorIs(b, err, why)
		assert.Equal(b, 20*time.Millisecond, time.Since(start))
		b.Masters.Master(2).ResetCommands()
		b.Masters.Master(2).Resume() // the answer comes when nobody waits for it
		b.Settle()
		assert.Equal(b, redlock.VerdictFree, b.Inspect(b.Redlock).Verdict())
		for _, c := range b.Masters.Master(2).Commands() {
			assert.NotEqual(b, "INFO", c[0], "it is as good as any, and the connection stays")
		}
	})
}

func TestInspectRefusesBadInput(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		i := b.Inspect(b.Redlock)
		var none context.Context
		for message, ask := range map[string]func() error{
			"redlock: key is empty":            func() error { _, err := b.Redlock.Inspect(ctx, ""); return err },
			"redlock: ctx is nil":              func() error { _, err := b.Redlock.Inspect(none, key); return err },
			"redlock: not made by New or Open": func() error { _, err := new(redlock.Redlock).Inspect(ctx, key); return err },
			"redlock: inspection is nil":       func() error { _, err := b.Redlock.ForceRelease(ctx, nil); return err },
			"redlock: key is empty ":           func() error { _, err := b.Redlock.ForceRelease(ctx, &redlock.Inspection{}); return err },
			"redlock: ctx is nil ":             func() error { _, err := b.Redlock.ForceRelease(none, i); return err },
		} {
			assert.EqualError(b, ask(), strings.TrimSpace(message))
		}
		_, err := b.Redlock.Inspect(ctx, "redlock:fence:{orders}")
		assert.ErrorContains(b, err, "is reserved")

		r := b.NewRedlock(redlock.Config{})
		require.NoError(b, r.Close())
		_, err = r.Inspect(ctx, key)
		assert.ErrorIs(b, err, redlock.ErrClosed)
		assert.EqualError(b, err, `redlock: inspect "orders": closed`)
		_, err = r.ForceRelease(ctx, i)
		assert.ErrorIs(b, err, redlock.ErrClosed)
		assert.EqualError(b, err, `redlock: force release "orders": closed`)
	})
}
