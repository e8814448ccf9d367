package inmemory_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

// inTime makes a client give up after a second, without a retry.
func inTime(o *redis.Options) {
	once(o)
	o.DialTimeout, o.ReadTimeout = time.Second, time.Second
}

// connected returns a client on the path that has a connection.
func connected(t *testing.T, p *inmemory.Path, configure ...func(*redis.Options)) *redis.Client {
	t.Helper()
	c := p.Client(append([]func(*redis.Options){once}, configure...)...)
	require.NoError(t, c.Ping(t.Context()).Err())
	return c
}

// onPath runs f in virtual time, with a master, a path to it and a client that has a connection on
// the path.
func onPath(t *testing.T, f func(t *testing.T, m *inmemory.Master, p *inmemory.Path, c *redis.Client)) {
	t.Helper()
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		f(t, m, p, connected(t, p))
	})
}

// background starts f. It returns a function that waits for f and returns its duration and
// error.
func background(f func() error) func() (time.Duration, error) {
	begin := time.Now()
	done := make(chan error, 1)
	var took time.Duration
	go func() {
		err := f()
		took = time.Since(begin)
		done <- err
	}()
	return func() (time.Duration, error) { err := <-done; return took, err }
}

// shaped makes a path delay requests and replies, and lose nothing.
func shaped(p *inmemory.Path, request, reply time.Duration) {
	p.Shape(func(d faultlink.Direction) (time.Duration, bool) {
		if d == faultlink.ToServer {
			return request, false
		}
		return reply, false
	})
}

// losing makes a path lose everything in one direction.
func losing(p *inmemory.Path, lost faultlink.Direction) {
	p.Shape(func(d faultlink.Direction) (time.Duration, bool) { return 0, d == lost })
}

func TestPathCutsOffItsClientAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		cut, other, direct := m.Path(), m.Path(), m.Client(inTime)
		c, d := connected(t, cut, inTime), connected(t, other, inTime)
		reached := func() {
			require.NoError(t, d.Set(t.Context(), "key", "value", 0).Err())
			require.NoError(t, direct.Set(t.Context(), "key", "value", 0).Err())
			require.NoError(t, other.Client(inTime).Ping(t.Context()).Err())
		}
		cut.Hold(true, true)
		reached()
		require.Error(t, c.Ping(t.Context()).Err())
		cut.Heal()
		require.NoError(t, c.Ping(t.Context()).Err())

		cut.Refuse(true)
		cut.Break()
		reached()
		require.Error(t, c.Ping(t.Context()).Err(), "its connection was cut")
		require.ErrorIs(t, c.Ping(t.Context()).Err(), syscall.ECONNREFUSED)

		cut.Refuse(false)
		losing(cut, faultlink.ToServer)
		reached()
		require.Error(t, c.Ping(t.Context()).Err())
	})
}

func TestHeldRequestIsExecutedWhenHealed(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		c := connected(t, p, func(o *redis.Options) { o.ReadTimeout = time.Hour })
		p.Hold(true, false)
		set := background(func() error { return c.Set(t.Context(), "key", "value", time.Minute).Err() })
		time.Sleep(10 * time.Minute)
		require.Empty(t, m.Miniredis().Keys())
		p.Heal()
		took, err := set()
		require.NoError(t, err)
		require.Equal(t, 10*time.Minute, took)
		require.Equal(t, time.Minute, m.Miniredis().TTL("key"), "its ttl begins with its execution")
	})
}

// The client gives up, but its request is in the network and still arrives.
func TestHeldRequestOutlivesItsClient(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		c := connected(t, p, inTime)
		p.Hold(true, false)
		require.Error(t, c.Set(t.Context(), "key", "late", time.Minute).Err())
		require.NoError(t, c.Close())
		time.Sleep(time.Hour)
		require.Empty(t, m.Miniredis().Keys())
		p.Heal()
		synctest.Wait()
		require.Equal(t, time.Minute, m.Miniredis().TTL("key"))
	})
}

func TestHeldReplyArrivesWhenHealed(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		c := connected(t, p, func(o *redis.Options) { o.ReadTimeout = time.Hour })
		p.Hold(false, true)
		set := background(func() error { return c.Set(t.Context(), "key", "value", 0).Err() })
		synctest.Wait()
		require.Equal(t, []string{"key"}, m.Miniredis().Keys(), "executed at once")
		time.Sleep(time.Minute)
		p.Heal()
		took, err := set()
		require.NoError(t, err)
		require.Equal(t, time.Minute, took)
	})
}

// Each call of Hold sets both directions, whatever was held before.
func TestHoldReplacesAnEarlierHold(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		c := connected(t, p, inTime)
		p.Hold(true, true)
		p.Hold(true, true)
		p.Hold(false, true)
		require.Error(t, c.Incr(t.Context(), "n").Err(), "replies are still held")
		require.Equal(t, []string{"n"}, m.Miniredis().Keys(), "and requests are not")
		p.Hold(true, false)
		require.Error(t, c.Ping(t.Context()).Err())
		p.Heal()
		p.Heal()
		require.NoError(t, c.Ping(t.Context()).Err())
	})
}

func TestDiallingAHeldPathTakesUntilItsContextEnds(t *testing.T) {
	for name, hold := range map[string]func(*inmemory.Path){
		"requests": func(p *inmemory.Path) { p.Hold(true, false) },
		"replies":  func(p *inmemory.Path) { p.Hold(false, true) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, m *inmemory.Master) {
				p := m.Path()
				c := p.Client(once, func(o *redis.Options) { o.DialTimeout = 3 * time.Second })
				hold(p)
				begin := time.Now()
				err := c.Ping(t.Context()).Err()
				require.ErrorContains(t, err, "dial tcp 10.0.0.1:6379")
				require.Equal(t, 3*time.Second, time.Since(begin))
				require.Empty(t, m.Commands())
			})
		})
	}
}

func TestDiallingAHeldPathProceedsWhenHealed(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		c := p.Client(once)
		p.Hold(true, true)
		ping := background(func() error { return c.Ping(t.Context()).Err() })
		time.Sleep(2 * time.Second)
		p.Heal()
		took, err := ping()
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, took)
	})
}

// A dial under way is held too, and waits.
func TestHoldCatchesADialUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		shaped(p, time.Second, 0)
		dialled := 0
		c := p.Client(once, func(o *redis.Options) {
			o.OnConnect = func(context.Context, *redis.Conn) error { dialled++; return nil }
		})
		ping := background(func() error { return c.Ping(t.Context()).Err() })
		time.Sleep(500 * time.Millisecond)
		p.Hold(true, false)
		time.Sleep(2 * time.Second)
		require.Zero(t, dialled)
		p.Shape(nil)
		p.Heal()
		took, err := ping()
		require.NoError(t, err)
		require.Equal(t, 2500*time.Millisecond, took)
	})
}

func TestHeldPathHidesThatItsMasterDied(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		c := connected(t, p, func(o *redis.Options) { o.ReadTimeout = time.Hour })
		p.Hold(false, true)
		set := background(func() error { return c.Set(t.Context(), "key", "value", 0).Err() })
		time.Sleep(time.Second)
		m.Kill()
		time.Sleep(time.Minute)
		p.Heal()
		took, err := set()
		require.ErrorIs(t, err, io.EOF, "the reply died with its master")
		require.Equal(t, time.Minute+time.Second, took)
		require.Equal(t, []string{"key"}, m.Miniredis().Keys())
	})
}

func TestKillCutsADelayedReplyAtOnce(t *testing.T) {
	onPath(t, func(t *testing.T, m *inmemory.Master, p *inmemory.Path, c *redis.Client) {
		shaped(p, 0, time.Second)
		set := background(func() error { return c.Set(t.Context(), "key", "value", 0).Err() })
		time.Sleep(400 * time.Millisecond)
		m.Kill()
		took, err := set()
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, 400*time.Millisecond, took)
		require.Equal(t, []string{"key"}, m.Miniredis().Keys())
	})
}

func TestRefuseRefusesNewConnectionsOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		old := connected(t, p)
		p.Refuse(true)
		require.ErrorIs(t, p.Client(once).Ping(t.Context()).Err(), syscall.ECONNREFUSED)
		require.NoError(t, old.Ping(t.Context()).Err())
		p.Refuse(false)
		require.NoError(t, p.Client(once).Ping(t.Context()).Err())
	})
}

func TestBreakLosesTheRequestUnderWay(t *testing.T) {
	onPath(t, func(t *testing.T, m *inmemory.Master, p *inmemory.Path, c *redis.Client) {
		shaped(p, time.Second, 0)
		set := background(func() error { return c.Set(t.Context(), "key", "value", 0).Err() })
		time.Sleep(400 * time.Millisecond)
		p.Break()
		took, err := set()
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, 400*time.Millisecond, took, "cut at once")
		time.Sleep(time.Minute)
		require.Empty(t, m.Miniredis().Keys())
		require.NoError(t, c.Ping(t.Context()).Err(), "a new connection is as before")
	})
}

func TestBreakLosesTheReplyUnderWay(t *testing.T) {
	onPath(t, func(t *testing.T, m *inmemory.Master, p *inmemory.Path, c *redis.Client) {
		shaped(p, 0, time.Second)
		set := background(func() error { return c.Set(t.Context(), "key", "value", 0).Err() })
		time.Sleep(400 * time.Millisecond)
		p.Break()
		_, err := set()
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, []string{"key"}, m.Miniredis().Keys())
	})
}

func TestBreakLosesHeldRequestsAndReplies(t *testing.T) {
	onPath(t, func(t *testing.T, m *inmemory.Master, p *inmemory.Path, c *redis.Client) {
		p.Hold(true, true)
		set := background(func() error { return c.Set(t.Context(), "key", "value", 0).Err() })
		time.Sleep(time.Second)
		p.Break()
		_, err := set()
		require.ErrorIs(t, err, io.EOF)
		p.Heal()
		synctest.Wait()
		require.Empty(t, m.Miniredis().Keys())
	})
}

// A client notices that an idle connection was cut when it next uses it.
func TestBreakIsNoticedAtTheNextUse(t *testing.T) {
	onPath(t, func(t *testing.T, m *inmemory.Master, p *inmemory.Path, c *redis.Client) {
		p.Break()
		require.ErrorIs(t, c.Ping(t.Context()).Err(), io.EOF)
		require.NoError(t, c.Ping(t.Context()).Err())
	})
}

func TestShapeIsExactInEachDirection(t *testing.T) {
	const request, reply = 7 * time.Millisecond, 11 * time.Millisecond
	onPath(t, func(t *testing.T, m *inmemory.Master, p *inmemory.Path, c *redis.Client) {
		shaped(p, request, reply)
		begin := time.Now()
		require.NoError(t, c.Set(t.Context(), "key", "value", time.Second).Err())
		require.Equal(t, request+reply, time.Since(begin))
		require.Equal(t, time.Second-reply, m.Miniredis().TTL("key"), "set when the request arrived")

		m.Delay(time.Millisecond, 2*time.Millisecond) // the master's delays come on top
		begin = time.Now()
		require.NoError(t, c.Ping(t.Context()).Err())
		require.Equal(t, request+reply+3*time.Millisecond, time.Since(begin))

		m.Delay(0, 0)
		p.Shape(nil)
		begin = time.Now()
		require.NoError(t, c.Ping(t.Context()).Err())
		require.Zero(t, time.Since(begin))
	})
}

// f is called once for the dial, once for the handshake and once for the command.
func TestShapeIsAskedOncePerMessage(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		var mu sync.Mutex
		asked := map[faultlink.Direction]int{}
		p.Shape(func(d faultlink.Direction) (time.Duration, bool) {
			mu.Lock()
			defer mu.Unlock()
			asked[d]++
			return time.Millisecond, false
		})
		c := p.Client(once, func(o *redis.Options) { o.DisableIdentity = true; o.Protocol = 3 })
		begin := time.Now()
		require.NoError(t, c.Ping(t.Context()).Err())
		require.Equal(t, map[faultlink.Direction]int{faultlink.ToServer: 3, faultlink.ToClient: 2}, asked)
		require.Equal(t, 5*time.Millisecond, time.Since(begin))

		for range 2 { // the first iteration gets a connection of its own
			clear(asked)
			_, err := c.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
				pipe.Ping(t.Context())
				pipe.Ping(t.Context())
				return nil
			})
			require.NoError(t, err)
		}
		require.Equal(t, map[faultlink.Direction]int{faultlink.ToServer: 1, faultlink.ToClient: 2}, asked)
	})
}

// The second request or reply is faster than the first, and still arrives after it.
func TestShapeKeepsOrderOnAConnection(t *testing.T) {
	for name, slow := range map[string]faultlink.Direction{"requests": faultlink.ToServer, "replies": faultlink.ToClient} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, m *inmemory.Master) {
				p := m.Path()
				sub := p.Client(once).Subscribe(t.Context(), "first")
				defer sub.Close()
				_, err := sub.Receive(t.Context())
				require.NoError(t, err)
				delays := map[faultlink.Direction][]time.Duration{slow: {time.Second, time.Millisecond}}
				var mu sync.Mutex
				p.Shape(func(d faultlink.Direction) (delay time.Duration, _ bool) {
					mu.Lock()
					defer mu.Unlock()
					if len(delays[d]) > 0 {
						delay, delays[d] = delays[d][0], delays[d][1:]
					}
					return delay, false
				})
				begin := time.Now()
				require.NoError(t, sub.Subscribe(t.Context(), "slow"))
				synctest.Wait()
				require.NoError(t, sub.Subscribe(t.Context(), "fast"))
				for _, want := range []string{"slow", "fast"} {
					got, err := sub.Receive(t.Context())
					require.NoError(t, err)
					require.Equal(t, want, got.(*redis.Subscription).Channel)
					require.Equal(t, time.Second, time.Since(begin))
				}
			})
		})
	}
}

func TestLostRequestIsNotExecutedAndCutsItsConnection(t *testing.T) {
	onPath(t, func(t *testing.T, m *inmemory.Master, p *inmemory.Path, c *redis.Client) {
		losing(p, faultlink.ToServer)
		require.ErrorIs(t, c.Set(t.Context(), "key", "value", 0).Err(), io.EOF)
		p.Shape(nil)
		require.Empty(t, m.Miniredis().Keys())
		m.ResetCommands()
		require.NoError(t, c.Ping(t.Context()).Err())
		require.Equal(t, "HELLO", m.Commands()[0][0], "a new connection")
	})
}

func TestLostReplyIsExecutedAndCutsItsConnection(t *testing.T) {
	onPath(t, func(t *testing.T, m *inmemory.Master, p *inmemory.Path, c *redis.Client) {
		losing(p, faultlink.ToClient)
		require.ErrorIs(t, c.Set(t.Context(), "key", "value", 0).Err(), io.EOF)
		p.Shape(nil)
		require.Equal(t, []string{"key"}, m.Miniredis().Keys())
		m.ResetCommands()
		require.NoError(t, c.Ping(t.Context()).Err())
		require.Equal(t, "HELLO", m.Commands()[0][0], "a new connection")
	})
}

// TCP sends a lost SYN again.
func TestDiallingIsNotLost(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		dials := 0
		p.Shape(func(faultlink.Direction) (time.Duration, bool) { dials++; return time.Second, dials == 1 })
		begin := time.Now()
		require.NoError(t, p.Client(once, func(o *redis.Options) { o.DisableIdentity = true }).Ping(t.Context()).Err())
		require.Equal(t, 5*time.Second, time.Since(begin), "the dial, the handshake and the command")
	})
}

func TestDiallingASlowPathEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		shaped(p, time.Minute, 0)
		begin := time.Now()
		require.Error(t, p.Client(inTime).Ping(t.Context()).Err())
		require.Equal(t, time.Second, time.Since(begin))
	})
}

func TestDiallingADeadMasterIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Path().Client(once)
		m.Kill()
		require.ErrorIs(t, c.Ping(t.Context()).Err(), syscall.ECONNREFUSED)
		require.NoError(t, m.Restart())
		require.NoError(t, c.Ping(t.Context()).Err())
	})
}

// The bubble ends, so no goroutine is left: neither of a held or delayed request or reply, nor
// of a subscriber, nor of a dial that has just begun.
func TestCloseLeavesNothingOfAHeldPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := inmemory.StartVirtual(t, 1)
		m := ms.Master(0)
		patient := func(o *redis.Options) { o.ReadTimeout = time.Hour }
		requests, replies, slow, fresh := m.Path(), m.Path(), m.Path(), m.Path()
		sub := connected(t, replies).Subscribe(t.Context(), "channel")
		_, err := sub.Receive(t.Context())
		require.NoError(t, err)
		clients := []*redis.Client{
			connected(t, requests, patient), connected(t, replies, patient), connected(t, slow, patient),
			fresh.Client(), // dials for as long as a default client does
		}
		requests.Hold(true, false)
		replies.Hold(false, true)
		fresh.Hold(true, true)
		shaped(slow, time.Hour, 0)
		errs := make([]error, len(clients)+1)
		for i, c := range clients {
			go func() { errs[i] = c.Incr(t.Context(), "n").Err() }()
		}
		go func() { _, errs[len(clients)] = sub.ReceiveMessage(t.Context()) }()
		synctest.Wait()
		m.Miniredis().Publish("channel", "held")
		require.NoError(t, ms.Close())
		synctest.Wait()
		for i, err := range errs {
			require.Error(t, err, "%d had ended when Close returned", i)
		}
	})
}

// The same without a bubble: the master listens on a socket, which the path does not use.
func TestPathInRealTime(t *testing.T) {
	ms := start(t, 2)
	m := ms.Master(0)
	p := m.Path()
	c := connected(t, p)
	require.NoError(t, c.Set(t.Context(), "key", "value", 0).Err())
	require.Equal(t, "value", ms.Clients()[0].Get(t.Context(), "key").Val())
	require.Zero(t, ms.Clients()[1].Exists(t.Context(), "key").Val())

	executed := make(chan struct{}, 1)
	m.Observe(func(x inmemory.Exchange) {
		if x.Command[0] == "INCR" {
			executed <- struct{}{}
		}
	})
	p.Hold(false, true)
	held := background(func() error { return c.Incr(t.Context(), "n").Err() })
	<-executed
	p.Heal()
	_, err := held()
	require.NoError(t, err)

	p.Refuse(true)
	p.Break()
	require.ErrorIs(t, c.Ping(t.Context()).Err(), io.EOF)
	require.ErrorIs(t, c.Ping(t.Context()).Err(), syscall.ECONNREFUSED)
	require.NoError(t, m.Client().Ping(t.Context()).Err())
	p.Refuse(false)
	p.Hold(true, true) // the path is held when it is closed
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.True(t, errors.Is(c.Ping(ctx).Err(), context.Canceled))
}
