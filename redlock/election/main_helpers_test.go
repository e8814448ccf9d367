package election_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/election"
)

const name, ttl = virtual.Key, virtual.TTL

var (
	ctx     = context.Background()
	errWork = errors.New("the work has failed")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(withExamples{m}) }

// candidate returns an Election on a Redlock of its own, as another process has it.
func candidate(b *virtual.Bed, cfg redlock.Config) *election.Election {
	b.Helper()
	return election.New(b.NewRedlock(cfg), name, ttl)
}

// campaign begins a term, and waits until every master has the lock.
func campaign(b *virtual.Bed, e *election.Election) *redlock.Lock {
	b.Helper()
	term, err := e.Campaign(ctx)
	require.NoError(b, err)
	settle()
	return term
}

// forget deletes the lock's key on masters.
func forget(b *virtual.Bed, which ...int) {
	for _, i := range which {
		b.Redis(i).Del(name)
	}
}

// call is a call of Lead that is under way.
type call struct {
	done chan struct{} // closed when Lead has returned
	err  error         // set before that
}

// lead calls Lead in a goroutine.
func lead(ctx context.Context, e *election.Election, fn func(context.Context) error) *call {
	c := &call{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = e.Lead(ctx, fn)
	}()
	return c
}

// result waits for the call.
func (c *call) result() error {
	<-c.done
	return c.err
}

// stage records who leads, and asserts that no two do at one time.
type stage struct {
	*virtual.Bed
	mu    sync.Mutex
	on    string
	terms []string
	last  int64 // the last term's token
}

// enter begins a term. token may be 0.
func (s *stage) enter(who string, token int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.Empty(s, s.on, "leads while %s begins", who)
	assert.True(s, token == 0 || token > s.last, "the tokens of terms grow")
	s.on, s.last = who, token
	s.terms = append(s.terms, who)
}

func (s *stage) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = ""
}

func (s *stage) present() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on
}

// settle is Bed.Settle for goroutines beside the test's own: it waits until all that takes no time
// is done, and then for a millisecond.
func settle() { time.Sleep(time.Millisecond) }

// soon returns a context that ends after d.
func soon(b *virtual.Bed, d time.Duration) context.Context {
	c, cancel := context.WithTimeout(ctx, d)
	b.Cleanup(cancel)
	return c
}
