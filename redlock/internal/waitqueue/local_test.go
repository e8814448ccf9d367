package waitqueue

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/redlock/internal/errs"
)

func isFirst[W any](c *Caller[W]) bool {
	if c.First() == nil {
		return true
	}
	select {
	case <-c.First():
		return true
	default:
		return false
	}
}

func TestLocalQueueIsFirstComeFirstServed(t *testing.T) {
	l := NewLocal[int]()
	a, b, c := l.Join("key"), l.Join("key"), l.Join("key")
	assert.True(t, isFirst(a))
	assert.True(t, isFirst(l.Join("another key")))

	var of LocalLock[int]
	a.Hold(&of)
	assert.False(t, isFirst(b), "a caller has the lock")
	l.Pass(&of)
	assert.True(t, isFirst(b))
	assert.False(t, isFirst(c))
	l.Pass(&of)
	assert.False(t, isFirst(c), "a lock is over once")

	assert.Nil(t, b.Leave())
	assert.True(t, isFirst(c))
	assert.Nil(t, c.Leave())
	assert.True(t, isFirst(l.Join("key")), "of a new queue")
}

func TestLocalQueueGoesOnAfterALockThatWasOverAtOnce(t *testing.T) {
	l := NewLocal[int]()
	a, b := l.Join("key"), l.Join("key")
	var of LocalLock[int]
	l.Pass(&of)
	a.Hold(&of)
	assert.True(t, isFirst(b))
}

func TestLocalQueueHasOneWait(t *testing.T) {
	l := NewLocal[int]()
	a, b, c := l.Join("key"), l.Join("key"), l.Join("key")
	wait := 1
	a.SetWait(&wait)
	assert.Nil(t, a.Leave(), "others use the wait")
	assert.Same(t, &wait, b.Wait())
	assert.Nil(t, c.Leave())
	assert.Same(t, &wait, b.Leave(), "nobody is left to use it")
	assert.Nil(t, l.Join("key").Wait())
}

func TestLocalQueueRemembersWhyItsCallersWait(t *testing.T) {
	l := NewLocal[int]()
	failure := errors.New("too few answers")
	a := l.Join("key")
	assert.NoError(t, a.Reason())
	a.Failed(failure)
	b := l.Join("key")
	assert.Equal(t, failure, b.Reason())
	var of LocalLock[int]
	a.Hold(&of)
	assert.Equal(t, errs.Held, b.Reason(), "a caller has the lock")
	l.Pass(&of)
	assert.Equal(t, errs.Held, b.Reason())
	assert.NoError(t, l.Join("key").Reason(), "it came after that lock")
}

func TestRecentKeys(t *testing.T) {
	var keys RecentKeys
	assert.False(t, keys.Take("a"))
	keys.Note("a", now)
	keys.Note("a", now)
	keys.Note("b", now)
	assert.True(t, keys.Take("a"))
	assert.False(t, keys.Take("a"), "for one acquisition")

	assert.Equal(t, now, keys.seen("b", in(foreignFor-1)))
	assert.Zero(t, keys.seen("b", in(foreignFor)))
	assert.False(t, keys.Take("b"), "forgotten")
	for i := range 2*maxRecent + 2 {
		keys.Note(strconv.Itoa(i), now.Add(time.Duration(i)))
		assert.LessOrEqual(t, len(keys.keys), maxRecent)
	}
}
