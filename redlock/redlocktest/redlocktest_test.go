package redlocktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// once makes a client give up after a second, without a retry.
func once(o *redis.Options) {
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.DialTimeout, o.ReadTimeout, o.ContextTimeoutEnabled = time.Second, time.Second, true
}

// inBubble runs f on a master with the key k, in virtual time.
func inBubble(t *testing.T, name string, f func(t *testing.T, m *redlocktest.Master, c *redis.Client)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := redlocktest.StartVirtual(t, 2).Master(1)
			c := m.Client(once)
			require.NoError(t, c.Set(t.Context(), "k", "v", time.Hour).Err())
			f(t, m, c)
		})
	})
}

func TestMastersAreASet(t *testing.T) {
	_, err := redlocktest.New(0)
	require.Error(t, err)
	masters, err := redlocktest.New(2)
	require.NoError(t, err)
	require.Equal(t, 2, masters.Len())
	require.Same(t, masters.Master(1), masters.All()[1])
	require.Equal(t, "redis://"+masters.Master(1).Addr(), masters.URLs()[1])
	c := masters.Clients()[1]
	require.NoError(t, c.Ping(t.Context()).Err())
	masters.Kill(0, 1)
	require.Error(t, c.Ping(t.Context()).Err())
	require.NoError(t, masters.Restart(1))
	require.NoError(t, c.Ping(t.Context()).Err())
	require.NoError(t, masters.Close())
	require.ErrorIs(t, c.Ping(t.Context()).Err(), redis.ErrClosed)
}

func TestFaultsOfAMaster(t *testing.T) {
	type master = redlocktest.Master
	for name, c := range map[string]struct {
		fault, end func(m *master)
		err        string // of a client's SET
		executed   bool
	}{
		"Stall":        {(*master).Stall, (*master).Resume, "i/o timeout", false},
		"Delay":        {func(m *master) { m.Delay(0, time.Minute) }, func(m *master) { m.Delay(0, 0) }, "i/o timeout", true},
		"LoseReplies":  {func(m *master) { m.LoseReplies(2) }, func(m *master) { m.LoseReplies(0) }, "EOF", true},
		"LoseRequests": {func(m *master) { m.LoseRequests(2) }, func(m *master) { m.LoseRequests(0) }, "EOF", false},
		"Demote":       {(*master).Demote, (*master).Promote, "READONLY", false},
		"Kill":         {(*master).Kill, func(m *master) { _ = m.Restart() }, "EOF", false},
		"SetPassword":  {func(m *master) { m.SetPassword("p") }, func(m *master) { m.SetPassword("") }, "NOAUTH", false},
	} {
		inBubble(t, name, func(t *testing.T, m *master, client *redis.Client) {
			set := func() error { return client.Set(t.Context(), "new", "v", 0).Err() }
			c.fault(m)
			require.ErrorContains(t, set(), c.err)
			require.Equal(t, c.executed, m.Miniredis().Exists("new"))
			c.end(m)
			require.NoError(t, set())
		})
	}
}

func TestWhatAMasterKeeps(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *redlocktest.Master) error
		left   time.Duration // of the key's hour
		role   string
	}{
		"Restart":      {(*redlocktest.Master).Restart, time.Hour, "replid2:0"},
		"RestartEmpty": {(*redlocktest.Master).RestartEmpty, -2, "replid2:0"},
		"FailOver":     {(*redlocktest.Master).FailOver, -2, "uptime_in_seconds:86400"},
		"JumpClock": {func(m *redlocktest.Master) error { m.JumpClock(time.Minute); return nil }, 59 * time.Minute,
			"uptime_in_seconds:86460"},
	} {
		inBubble(t, name, func(t *testing.T, m *redlocktest.Master, client *redis.Client) {
			require.NoError(t, c.change(m))
			again := m.Client(once)
			require.Equal(t, c.left, again.TTL(t.Context(), "k").Val())
			require.Contains(t, again.Info(t.Context(), "server", "replication").Val(), c.role)
		})
	}
}

func TestCommandsAndScripts(t *testing.T) {
	inBubble(t, "", func(t *testing.T, m *redlocktest.Master, client *redis.Client) {
		m.ResetCommands()
		sha := client.ScriptLoad(t.Context(), "return 1").Val()
		require.Equal(t, [][]string{{"SCRIPT", "load", "return 1"}}, m.Commands())
		require.NoError(t, m.FlushScripts())
		require.ErrorContains(t, client.EvalSha(t.Context(), sha, nil).Err(), "NOSCRIPT")
	})
}

func TestFaultsOfSubscriptions(t *testing.T) {
	inBubble(t, "", func(t *testing.T, m *redlocktest.Master, client *redis.Client) {
		ctx, path := t.Context(), m.Path()
		subscribe := func() error {
			sub := path.Client(once).Subscribe(ctx, "a")
			_, err := sub.Receive(ctx)
			t.Cleanup(func() { sub.Close() })
			return err
		}
		received := func() (n int64) { return client.Publish(ctx, "a", "b").Val() }
		m.RefuseSubscriptions("NOPERM")
		require.ErrorContains(t, subscribe(), "NOPERM")
		m.RefuseSubscriptions("")
		for _, cut := range []func(){m.BreakSubscriptions, path.BreakSubscriptions} {
			require.NoError(t, subscribe())
			require.EqualValues(t, 1, received())
			cut()
			synctest.Wait()
			require.Zero(t, received())
		}

		sub := client.Subscribe(ctx, "a")
		defer sub.Close()
		_, err := sub.Receive(ctx)
		require.NoError(t, err)
		m.LoseMessages(1)
		m.DelayMessages(time.Minute)
		begin := time.Now()
		require.EqualValues(t, 1, received())
		require.EqualValues(t, 1, received())
		_, err = sub.ReceiveTimeout(ctx, time.Hour)
		require.NoError(t, err)
		require.Equal(t, time.Minute, time.Since(begin))
		_, err = sub.ReceiveTimeout(ctx, time.Hour)
		require.Error(t, err, "the other message is lost")
	})
}

func TestFaultsOfAPath(t *testing.T) {
	inBubble(t, "", func(t *testing.T, m *redlocktest.Master, other *redis.Client) {
		path := m.Path()
		client := path.Client(once)
		ping := func() error { return client.Ping(t.Context()).Err() }
		require.NoError(t, ping())
		path.Refuse(true)
		require.NoError(t, ping(), "on an open connection")
		path.Break()
		require.ErrorContains(t, ping(), "EOF")
		require.ErrorContains(t, ping(), "refused")
		path.Refuse(false)
		path.Hold(true, true)
		require.ErrorContains(t, ping(), "i/o timeout")
		require.NoError(t, other.Ping(t.Context()).Err())
		path.Heal()
		require.NoError(t, ping())
	})
}
