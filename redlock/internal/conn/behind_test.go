package conn

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/asynclog"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
	"github.com/quorumlock/redlock/redlock/internal/voter"
)

// forgetful is a client's hook that makes some commands of the first batch fail. Either the
// server does not know their scripts, as if it had lost all scripts and other clients had
// brought some back in the meantime, or it fails for a moment.
type forgetful struct {
	undone uint // bit i: command i fails
	fails  bool
	over   bool
}

func (f *forgetful) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *forgetful) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		f.forget([]redis.Cmder{cmd})
		return next(ctx, cmd)
	}
}

func (f *forgetful) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		f.forget(cmds)
		return next(ctx, cmds)
	}
}

func (f *forgetful) forget(cmds []redis.Cmder) {
	scripts := 0
	for _, cmd := range cmds {
		args := cmd.Args()
		if verb, _ := args[0].(string); !strings.HasPrefix(verb, "eval") {
			continue
		}
		switch {
		case f.over || f.undone>>scripts&1 == 0:
		case f.fails:
			args[2] = 1000 // more keys than there are
		default:
			args[1] = strings.Repeat("0", 40)
		}
		scripts++
	}
	f.over = f.over || scripts > 0
}

// gated is a transport that keeps its first batch until the gate opens, and then fails it. All
// calls that were submitted meanwhile are one batch.
type gated struct {
	*pinned
	kept, gate chan struct{}
	open       bool
}

func (g *gated) Carry(ctx context.Context, batch []*call) {
	if !g.open {
		close(g.kept)
		<-g.gate
		g.open = true
		for _, c := range batch {
			c.Fail(errNoScript)
		}
		return
	}
	g.take()
	g.exchange(ctx, batch)
}

func (g *gated) Rest() { g.rest() }

// waiter has a queue entry until it leaves.
type waiter struct{ left atomic.Bool }

func (w *waiter) Left(int64) bool { return w.left.Load() }

func (w *waiter) sender() *protocol.Sender {
	ticket := time.Now().UnixMicro()
	return &protocol.Sender{Waiter: w, Name: "fedcba9876543210 key", Ticket: protocol.TicketText(ticket), Number: ticket}
}

// sendTogether sends operations on a key in one batch, and returns when nothing is left
// to be sent again. A digit is the value's number, 0 for none; + is a queue entry.
func sendTogether(t *testing.T, server *miniredis.Miniredis, ops string, hook *forgetful) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2, DisableIdentity: true})
	defer client.Close()
	client.AddHook(hook)
	clk := clock.Skewed(clock.System(), 100, 0) // pending deliveries are sent again soon
	guard := voter.NewGuard(clk, 0, clock.DefaultDrift, 1, asynclog.New(nil), nil)
	conn := &gated{pinned: pin(client, guard.Server(0, "node", server.Addr()), "", clk, time.Second), kept: make(chan struct{}), gate: make(chan struct{})}
	conn.wire.loaded = map[string]bool{}
	for _, s := range []*script.Script{&script.Propose, &script.Extend, &script.Release, &script.Retain, &script.Queue} {
		conn.wire.loaded[s.SHA1] = true
	}
	group := quorum.NewGroup([]quorum.Transport[protocol.Operation]{conn}, clk, time.Hour)
	group.Start(quorum.Spec[protocol.Operation]{Op: protocol.Operation{Kind: protocol.Inspect}})
	<-conn.kept

	w := &waiter{}
	kinds := map[string]protocol.Kind{
		"propose": protocol.Acquire, "try": protocol.Acquire, "topup": protocol.TopUp, "extend": protocol.Extend, "release": protocol.Release,
		"cleanup": protocol.CleanUp, "stand": protocol.Enqueue, "leave": protocol.Dequeue, "force": protocol.ForceRelease,
		"retain": protocol.Retain,
	}
	var sent sync.WaitGroup
	for _, op := range strings.Fields(ops) {
		name, queues := strings.CutPrefix(op, "+")
		value := strings.TrimSuffix("value "+name[len(name)-1:], "value 0")
		c := protocol.Operation{
			Kind: kinds[name[:len(name)-1]], Key: "key", NodeKey: "key", Value: value, TTL: int64(time.Hour / time.Millisecond), Queue: protocol.QueueOf("key"),
			Until: clk.Now().Add(retained),
		}
		if c.Kind.Takes() || c.Kind == protocol.Extend {
			c.Fence = &protocol.Fence{Key: protocol.FenceKey("key"), Token: time.Now().UnixMicro(), Retention: time.Hour.Milliseconds()}
		}
		if queues && (c.Kind == protocol.Dequeue || c.Kind == protocol.Release) {
			w.left.Store(true) // a caller that leaves does this first
		}
		if queues {
			c.Sender = w.sender()
			if c.Kind == protocol.Enqueue || c.Kind == protocol.Dequeue {
				c.Sender.Old = value
			}
		}
		spec := quorum.Spec[protocol.Operation]{Op: c, All: true, Done: func(*quorum.Round[protocol.Operation]) { sent.Done() }}
		if !c.Kind.Takes() && c.Kind != protocol.Extend && value != "" || c.Kind == protocol.Dequeue {
			spec.KeepUntil = clk.Now().Add(time.Hour)
		}
		sent.Add(1)
		group.Start(spec)
	}
	close(conn.gate)
	sent.Wait()
	group.Close(time.Hour)
}

// A server can lose its scripts, and get some of them again from other clients in the middle of
// a batch. Whichever of a batch's scripts it lacks then, in the end neither our key nor our
// queue entry is left, as if all calls had been executed in their order. The same holds if a
// server fails for a moment, and calls are repeated behind later ones.
func TestReleaseIsNotOvertakenAfterAScriptFlush(t *testing.T) {
	const theirs = "0123456789abcdef key"
	server := miniredis.RunT(t)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2, DisableIdentity: true})
	defer admin.Close()
	for _, s := range []*script.Script{&script.Propose, &script.Extend, &script.Release, &script.Queue} {
		require.NoError(t, admin.ScriptLoad(t.Context(), s.Text).Err())
	}
	for _, ops := range []string{
		"propose1 cleanup1",
		"propose1 release1",
		"topup1 release1",
		"topup1 force1",
		"propose1 propose1 release1",
		"propose1 cleanup1 propose2 cleanup2",
		"propose1 extend1 release1",
		"+stand0 +leave0",
		"+stand0 +release1",
		"+stand1 +leave1",
		"+stand1 +stand1 +release2",
		"+try1 +stand1 +leave1",
		"+try1 +leave1",
		"+try1 +release1",
		"+stand0 +try1 +release1",
		"+try1 +stand1 +try2 +release2",
		"+try1 +stand1 +try2 +stand2 +leave2",
		"+topup1 +release1",
		"+topup1 +leave0 release1",
	} {
		for _, at := range []string{"a free key", "a held key", "a key that somebody waits for", "a held key that somebody waits for"} {
			for undone := uint(1); undone < 1<<len(strings.Fields(ops)); undone++ {
				for _, fails := range []bool{false, true} {
					what := fmt.Sprintf("%s at %s, %b undone, fails %t", ops, at, undone, fails)
					server.FlushAll()
					if strings.Contains(at, "held") {
						require.NoError(t, server.Set("key", "theirs"))
					}
					if strings.Contains(at, "waits") {
						_, err := server.ZAdd("redlock:queue:{key}", float64(time.Now().UnixMicro()), theirs)
						require.NoError(t, err)
						require.NoError(t, server.Set("redlock:queued:{key}", "1"))
					}
					sendTogether(t, server, ops, &forgetful{undone: undone, fails: fails})

					value, _ := server.Get("key")
					assert.Contains(t, []string{"", "theirs"}, value, "%s: the key stays", what)
					members, _ := server.ZMembers("redlock:queue:{key}")
					for _, m := range members {
						assert.Equal(t, theirs, strings.TrimPrefix(m, "@"), "%s: the entry stays", what)
					}
					assert.Equal(t, len(members) > 0, server.Exists("redlock:queued:{key}"), "%s: the flag", what)
				}
			}
		}
	}
}

// retained is how long a Retain leaves the key taken here. All other ttls are an hour.
const retained = time.Minute

// The same holds for a Retain: behind an extension, or an acquisition, that was sent again the key
// would live for the whole ttl.
func TestReleaseAfterIsNotOvertakenAfterAScriptFlush(t *testing.T) {
	server := miniredis.RunT(t)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2, DisableIdentity: true})
	defer admin.Close()
	for _, s := range []*script.Script{&script.Propose, &script.Extend, &script.Release, &script.Retain, &script.Queue} {
		require.NoError(t, admin.ScriptLoad(t.Context(), s.Text).Err())
	}
	for _, ops := range []string{"extend1 retain1", "topup1 retain1", "propose1 extend1 retain1", "extend1 extend2 retain1", "extend1 +topup1 retain1"} {
		for undone := uint(1); undone < 1<<len(strings.Fields(ops)); undone++ {
			server.FlushAll()
			if strings.HasPrefix(ops, "extend") {
				require.NoError(t, server.Set("key", "value 1"))
				server.SetTTL("key", time.Hour)
			}
			sendTogether(t, server, ops, &forgetful{undone: undone})
			if value, _ := server.Get("key"); assert.Equal(t, "value 1", value, "%s, %b undone", ops, undone) {
				assert.LessOrEqual(t, server.TTL("key"), retained, "%s, %b undone", ops, undone)
			}
		}
	}
}

// A server that lost its scripts while a connection was open gets them again with the batch
// that finds out, and later batches need nothing but the hash.
func TestScriptsAreSentAgainToAServerThatLostThem(t *testing.T) {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2, DisableIdentity: true})
	defer client.Close()
	clk := clock.System()
	guard := voter.NewGuard(clk, 0, clock.DefaultDrift, 1, asynclog.New(nil), nil)
	node, err := NewNode(client, Config{NodeTimeout: time.Second, Clock: clk})
	require.NoError(t, err)
	node.Identify(func(addr string) *voter.Server { return guard.Server(0, addr, addr) })
	group := quorum.NewGroup([]quorum.Transport[protocol.Operation]{node}, clk, time.Minute)
	defer group.Close(0)
	release := func(what string) {
		t.Helper()
		require.NoError(t, server.Set("key", "value"))
		round := group.Start(quorum.Spec[protocol.Operation]{Op: protocol.Operation{
			Kind: protocol.Release, Key: "key", NodeKey: "key", Value: "value", Queue: protocol.QueueOf("key"),
		}})
		round.Wait(t.Context())
		assert.Equal(t, quorum.Won, round.Tally().Outcome(), what)
		assert.False(t, server.Exists("key"), what)
	}
	release("the first batch loads the script")
	for range 3 {
		require.NoError(t, client.ScriptFlush(t.Context()).Err())
		release("after SCRIPT FLUSH")
		release("the script is there again")
	}
}
