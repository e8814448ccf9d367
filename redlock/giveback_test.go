package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// On links of 20 ms a minority grants in vain. Whenever the context ends after that, what
// they granted is gone on return, and that takes a round trip at the most. What they have
// not answered yet, as a second attempt of Acquire's, is gone a round trip after the answer.
func TestAcquireLeavesNothingWhereItWasGranted(t *testing.T) {
	const roundTrip = 20 * time.Millisecond
	try, wait := (*redlock.Redlock).TryAcquire, (*redlock.Redlock).Acquire
	for name, acquire := range map[string]func(*redlock.Redlock, context.Context, string, time.Duration) (*redlock.Lock, error){
		"TryAcquire": try, "Acquire": wait,
	} {
		for ends := time.Millisecond; ends < 140*time.Millisecond; ends += 3 * time.Millisecond {
			virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
				b.Warm()
				b.Delay(roundTrip/2, roundTrip/2)
				b.Steal(key, time.Hour, 0, 1, 2)
				for i := range 3 { // the others have granted by the decision
					b.Masters.Master(i).Delay(roundTrip/2, roundTrip/2+100*time.Microsecond)
				}
				start := time.Now()
				_, err := acquire(b.Redlock, impatient(b, ends), key, ttl)
				require.Error(b, err)
				took := time.Since(start)
				assert.LessOrEqual(b, took, ends+roundTrip+100*time.Microsecond, name)
				for i := 3; i < 5; i++ {
					m := b.Masters.Master(i)
					has, _ := m.Miniredis().Get(key)
					switch granted := firstValue(m.Commands()); {
					case ends < roundTrip: // nobody has answered
						assert.Equal(b, ends, took, "%s, %v", name, ends)
					default:
						require.NotEmpty(b, granted)
						assert.NotEqual(b, granted, has, "%s, the context ends after %v", name, ends)
					}
				}
				time.Sleep(2*roundTrip + time.Millisecond)
				assert.Equal(b, []int{0, 1, 2}, b.Has(key), "%s, the context ends after %v", name, ends)
			})
		}
	}
}

// firstValue is that of the first attempt on the key.
func firstValue(commands [][]string) string {
	for _, c := range commands {
		if c[0] == "SET" && c[1] == key {
			return c[2]
		}
	}
	return ""
}

// A node that hangs after it granted costs a cancelled caller no more than a NodeTimeout.
func TestAcquireDoesNotWaitForAHungNodeToGiveBack(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		b.Delay(time.Millisecond, time.Millisecond)
		b.Steal(key, time.Hour, 0, 1, 2)
		time.AfterFunc(2*time.Millisecond, func() { b.Stall(3, 4) })
		assert.LessOrEqual(b, virtual.Took(func() {
			_, err := b.Redlock.Acquire(impatient(b, 5*time.Millisecond), key, ttl)
			assert.ErrorIs(b, err, redlock.ErrHeld)
		}), 5*time.Millisecond+virtual.NodeTimeout)
		b.Stall(0, 1, 2)
		assert.Equal(b, 300*time.Millisecond, virtual.Took(func() {
			_, err := b.Redlock.Acquire(impatient(b, 300*time.Millisecond), "other", ttl)
			assert.ErrorIs(b, err, redlock.ErrNoQuorum)
		}), "nobody granted")
	})
}
