package redlock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
	"github.com/quorumlock/redlock/redlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(withExamples{m}) }

// withExamples starts the masters that the examples run on.
type withExamples struct{ tests *testing.M }

func (m withExamples) Run() int {
	five, err := inmemory.New(5)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	masters = five.URLs()
	defer func() { _ = five.Close() }()
	return m.tests.Run()
}

// A test that is about time runs in virtual time: in memory, nothing takes any
// unless the test delays it, so durations are exact.

// bed is a Redlock on in-memory masters, in a bubble.
type bed struct {
	*testing.T
	masters *inmemory.Masters
	lock    *redlock.Redlock
}

const nodeTimeout = 200 * time.Millisecond

// virtually runs f in a bubble with n masters and a Redlock on clients with
// go-redis' default options.
func virtually(t *testing.T, n int, cfg redlock.Config, f func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{T: t, masters: inmemory.StartVirtual(t, n)}
		b.lock = b.client(cfg)
		f(b)
	})
}

// client is one more Redlock on the masters, closed with the test.
func (b *bed) client(cfg redlock.Config) *redlock.Redlock {
	b.Helper()
	r, err := redlock.New(b.masters.Clients(), cfg)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, r.Close()) })
	return r
}

// took is the virtual time that f takes.
func took(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// warm has connections made and scripts cached, so that nothing but the round
// trips that a test is about takes time.
func (b *bed) warm() {
	b.Helper()
	l := b.acquire("warm up", time.Second)
	b.settle() // so that no node is left out
	require.NoError(b, l.Extend(context.Background(), time.Second))
	b.settle()
	require.NoError(b, l.Release(context.Background()))
	b.settle()
	for i := range b.masters.Len() {
		b.commands(i)
	}
}

// has lists the masters that have the key.
func (b *bed) has(key string) (which []int) {
	for i, m := range b.masters.All() {
		if m.Miniredis().Exists(key) {
			which = append(which, i)
		}
	}
	return which
}

// commands lists what reached master i since the last call, without handshakes and
// without the question which server it is.
func (b *bed) commands(i int) (sent []string) {
	m := b.masters.Master(i)
	for _, c := range m.Commands() {
		if !slices.Contains([]string{"HELLO", "CLIENT", "AUTH", "SELECT", "INFO"}, c[0]) {
			sent = append(sent, c[0])
		}
	}
	m.ResetCommands()
	return sent
}

// asked is commands without what it takes to listen there.
func (b *bed) asked(i int) []string {
	return slices.DeleteFunc(b.commands(i), func(c string) bool { return c == "SUBSCRIBE" || c == "PING" })
}

// settle lets everything that is under way and takes no time come to its end.
func (b *bed) settle() { synctest.Wait() }

// stall hangs masters: they take requests and answer none until resumed.
func (b *bed) stall(which ...int) {
	for _, i := range which {
		b.masters.Master(i).Stall()
	}
}

func (b *bed) delay(request, reply time.Duration) {
	for _, m := range b.masters.All() {
		m.Delay(request, reply)
	}
}

// steal puts somebody else's value under the key.
func (b *bed) steal(key string, ttl time.Duration, which ...int) {
	for _, i := range which {
		m := b.masters.Master(i).Miniredis()
		require.NoError(b, m.Set(key, "somebody else"))
		if ttl > 0 {
			m.SetTTL(key, ttl)
		}
	}
}

func (b *bed) acquire(key string, ttl time.Duration) *redlock.Lock {
	b.Helper()
	l, err := b.lock.TryAcquire(context.Background(), key, ttl)
	require.NoError(b, err)
	return l
}

// text is an error's, for tests of what it says.
func text(err error) string { return fmt.Sprint(err) }
