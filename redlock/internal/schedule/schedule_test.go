package schedule

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
)

// task records when it was ended and renewed, from the start of its test.
type task struct {
	entry   Entry
	ended   []time.Duration
	renewed []time.Duration
}

// bed is a Scheduler in virtual time.
type bed struct {
	*Scheduler[*task]
	start time.Time
	calls []string
}

func newBed() *bed {
	b := &bed{start: time.Now()}
	b.Scheduler = New(clock.System(), func(k *task) *Entry { return &k.entry },
		func(k *task, _ time.Time) {
			k.ended = append(k.ended, time.Since(b.start))
			b.calls = append(b.calls, "end")
			b.Remove(k)
		},
		func(k *task) {
			k.renewed = append(k.renewed, time.Since(b.start))
			b.calls = append(b.calls, "renew")
		})
	return b
}

// settle waits until all that is scheduled has happened.
func (b *bed) settle() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

func (b *bed) in(d time.Duration) time.Time { return b.start.Add(d) }

func TestEndAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed()
		defer b.Stop()
		var first, second, third task
		b.EndAt(&first, b.in(3*time.Second))
		b.EndAt(&second, b.in(time.Second)) // sooner than what the timer is set for
		b.EndAt(&third, b.in(2*time.Second))
		b.EndAt(&third, b.in(4*time.Second)) // replaces the earlier time
		b.settle()
		assert.Equal(t, []time.Duration{3 * time.Second}, first.ended)
		assert.Equal(t, []time.Duration{time.Second}, second.ended)
		assert.Equal(t, []time.Duration{4 * time.Second}, third.ended)
	})
}

func TestRenewBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed()
		defer b.Stop()
		var k, idle task
		b.RenewBy(&idle, b.in(time.Second)) // it has no renewal to move
		b.RenewAt(&k, b.in(10*time.Second))
		b.RenewBy(&k, b.in(20*time.Second)) // never later
		b.RenewBy(&k, b.in(5*time.Second))
		b.settle()
		assert.Equal(t, []time.Duration{5 * time.Second}, k.renewed, "once for each RenewAt")
		assert.Empty(t, idle.renewed)
	})
}

func TestRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed()
		defer b.Stop()
		var k task
		b.EndAt(&k, b.in(2*time.Second))
		b.RenewAt(&k, b.in(time.Second))
		b.Remove(&k)
		b.settle()
		assert.Empty(t, b.calls)
	})
}

// Ends come first, however many renewals are due, and no more renewals are under way than
// allowed.
func TestRenewAtManyTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed()
		defer b.Stop()
		due := b.in(time.Second)
		tasks := make([]task, maxRenewing+10)
		for i := range tasks {
			b.RenewAt(&tasks[i], due)
		}
		var k task
		b.EndAt(&k, due)
		b.settle()
		require.Len(t, b.calls, maxRenewing+1)
		assert.Equal(t, "end", b.calls[0])
		for range 10 {
			b.RenewalDone()
		}
		synctest.Wait()
		assert.Len(t, b.calls, maxRenewing+11)
	})
}

func TestStopReturnsEntriesThatWereNotRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed()
		var kept, removed, later task
		b.EndAt(&kept, b.in(time.Second))
		b.EndAt(&removed, b.in(time.Second))
		b.Remove(&removed)
		assert.Equal(t, []*task{&kept}, b.Stop())
		b.EndAt(&later, b.in(time.Second))
		b.settle()
		assert.Empty(t, b.calls)
	})
}
