package wakeup_test

import (
	"context"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/spy"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

const longTTL = 30 * time.Second

// kept returns a lock of the party that has been renewed once.
func kept(p *virtual.Party) *redlock.Lock {
	p.Bed.Helper()
	l := p.Bed.Hold(p, longTTL)
	l.KeepAlive()
	time.Sleep(longTTL/3 + 2*time.Second)
	return l
}

// noticed has the operator break the lock, and returns how long its holder took to learn of that.
func noticed(b *virtual.Bed, operator *virtual.Party, i *redlock.Inspection, l *redlock.Lock) time.Duration {
	b.Helper()
	began := time.Now()
	_, err := operator.ForceRelease(ctx, i)
	require.NoError(b, err)
	<-l.Context().Done()
	assert.Equal(b, redlock.ErrNotHeld, context.Cause(l.Context()))
	return time.Since(began)
}

// say publishes on the channel of broken locks. It returns how many subscribers have heard the
// message.
func say(b *virtual.Bed, message string, on ...int) (heard int) {
	for _, i := range on {
		heard += b.Redis(i).Publish(spy.BrokenChannel, message)
	}
	return heard
}
