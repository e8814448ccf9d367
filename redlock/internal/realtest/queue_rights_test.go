package realtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
)

// A user without the rights to queue releases what a user with them waits for, and is told
// that it did.
func TestRealReleaseWithoutTheRightsToQueue(t *testing.T) {
	f := startFleet(t, 3, redisserver.ACL(user("locker", minimalRights...), user("waker", wakingRights...)))
	r, _ := f.permitted("waker", nil)
	holder, _ := f.permitted("locker", nil)
	l := f.acquire(holder, key, time.Hour)
	f.onAll("lock:"+key, l, f.all()...)
	w := f.wait(r, key, ttl)
	f.queued("lock:"+key, 1, f.all()...)
	require.NoError(t, f.release(l))
	require.NoError(t, f.release(w.got()))
}
