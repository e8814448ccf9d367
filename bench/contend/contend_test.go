package contend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/bench/child"
	"github.com/quorumlock/redlock/bench/masters"
	"github.com/quorumlock/redlock/bench/result"
	"github.com/quorumlock/redlock/bench/subject"
)

const contenderFlag = "-contend"

// TestMain makes the test's own binary a contender.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == contenderFlag {
		if child.Run(os.Args[2], os.Stdin, os.Stdout, Child) != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// place is a lock in memory, with room for some holders.
type place struct {
	room  chan bool
	tries atomic.Int64
	fail  error
}

func (p *place) Acquire(ctx context.Context, key string) error {
	if key != "wanted" {
		return nil
	}
	p.tries.Add(1)
	if p.fail != nil && p.tries.Load()%2 == 0 {
		return p.fail
	}
	select {
	case p.room <- true:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *place) Release(context.Context) error {
	select {
	case <-p.room:
	default: // it was acquired by another name
	}
	return nil
}

func contenders(p *place, n int) (all []Contender) {
	for i := range n {
		all = append(all, Contender{p, fmt.Sprint(i)})
	}
	return all
}

var quick = Turn{Key: "wanted", Hold: time.Millisecond, Warm: 10 * time.Millisecond, For: 100 * time.Millisecond}

func TestContendersTakeTurns(t *testing.T) {
	p := &place{room: make(chan bool, 1)}
	o, err := Run(t.Context(), contenders(p, 4), new(Counter), nil, quick)
	require.NoError(t, err)
	assert.Greater(t, o.Acquisitions, 10)
	assert.Zero(t, o.Twice)
	assert.Zero(t, o.Errors)
	assert.GreaterOrEqual(t, o.Held, quick.Hold)
	assert.Positive(t, o.Alone)
	assert.Positive(t, o.Gap.P50)
	assert.Positive(t, o.Wait.P50)
	assert.Positive(t, o.Jain)
	assert.Empty(t, p.room, "who had it at the end has released it")
}

// A lock that lets two holders in is detected.
func TestTwoHoldersAreSeen(t *testing.T) {
	for _, proof := range []Proof{new(Counter), File(filepath.Join(t.TempDir(), "inside"))} {
		o, err := Run(t.Context(), contenders(&place{room: make(chan bool, 2)}, 4), proof, nil, quick)
		require.NoError(t, err)
		assert.Positive(t, o.Twice, "%T", proof)
	}
}

func TestAFileIsAProof(t *testing.T) {
	f := File(filepath.Join(t.TempDir(), "inside"))
	assert.True(t, f.Enter())
	assert.False(t, f.Enter())
	assert.True(t, f.Leave())
	assert.False(t, f.Leave(), "somebody else has left")
	assert.True(t, f.Enter())
	assert.True(t, f.Leave())
}

// Failures in a turn are counted; its end is not a failure.
func TestFailedAcquisitionsAreCounted(t *testing.T) {
	p := &place{room: make(chan bool, 1)}
	all := contenders(p, 2)
	_, err := Alone(t.Context(), p, "wanted")
	require.NoError(t, err)
	p.fail = errors.New("no")
	w := Window{time.Now(), time.Now().Add(50 * time.Millisecond)}
	logs, _, err := w.contend(t.Context(), all, new(Counter), nil, quick)
	require.NoError(t, err)
	o := Sum(logs, w.Begin, w.End)
	assert.Positive(t, o.Errors)
	assert.EqualError(t, o.Err, "no")
	assert.Positive(t, o.Acquisitions)
}

// A contender that cannot connect at first tries again; so does one that is alone.
func TestArrivalsAreTriedAgain(t *testing.T) {
	p := &place{room: make(chan bool, 1), fail: errors.New("no")}
	all := []Contender{{p, "wanted"}, {p, "wanted"}}
	require.NoError(t, arrive(t.Context(), all))
	alone, err := Alone(t.Context(), p, "wanted")
	require.NoError(t, err)
	assert.Less(t, alone, 10*time.Millisecond, "the pauses after failures are no cycles")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.room <- true // an acquisition would wait
	assert.Error(t, arrive(ctx, all))
}

func TestATurnEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	long := quick
	long.For = time.Hour
	_, err := Run(ctx, contenders(&place{room: make(chan bool, 1)}, 2), new(Counter), nil, long)
	assert.Error(t, err)
}

func TestContendersInProcesses(t *testing.T) {
	subject.Quiet()
	set := masters.Start(t, 5)
	turn := quick
	turn.Warm, turn.For = 200*time.Millisecond, 500*time.Millisecond
	o, err := Processes(t.Context(), contenderFlag, 3, Plan{
		Subject: result.Quorumlock, Addrs: set.Addrs(5), Turn: turn,
	})
	require.NoError(t, err)
	assert.Positive(t, o.Acquisitions)
	assert.Zero(t, o.Twice)
	assert.Zero(t, o.Errors, "%v", o.Err)
	assert.Positive(t, o.Alone)
	assert.Positive(t, o.Gap.P50)
	assert.GreaterOrEqual(t, o.Commands, int64(o.Acquisitions*3), "each is on three masters at least")
	require.NoError(t, set.AwaitEmpty(t.Context(), time.Second))

	_, err = Processes(t.Context(), contenderFlag, 2, Plan{Subject: "nobody", Addrs: set.Addrs(5), Turn: turn})
	assert.ErrorContains(t, err, "nobody")
}
