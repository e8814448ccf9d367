package realtest_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/script"
)

// stored is a key that a test sets up or expects.
type stored struct {
	value string
	ttl   time.Duration // zero if it has none
}

// absent means that there is no key, and aList is a key of another type.
var absent, aList = stored{}, stored{value: "\x00list"}

func (f *fleet) store(key string, s stored) {
	f.Helper()
	switch s {
	case absent:
	case aList:
		require.NoError(f, f.admin[0].RPush(f.ctx, key, "element").Err())
	default:
		require.NoError(f, f.admin[0].Set(f.ctx, key, s.value, s.ttl).Err())
	}
}

// isStored compares ttls with a tolerance, because they run. No test needs all of it.
func (f *fleet) isStored(key string, want stored) {
	f.Helper()
	kind := f.admin[0].Type(f.ctx, key).Val()
	switch want {
	case absent:
		assert.Equal(f, "none", kind, key)
		return
	case aList:
		assert.Equal(f, "list", kind, key)
		return
	}
	assert.Equal(f, want.value, f.admin[0].Get(f.ctx, key).Val(), key)
	left := f.admin[0].PTTL(f.ctx, key).Val()
	if want.ttl == 0 {
		assert.EqualValues(f, -1, left, "%s has a ttl", key)
		return
	}
	assert.LessOrEqual(f, left, want.ttl, key)
	assert.Greater(f, left, want.ttl-hang, key)
}

// The results of propose.lua in each case of steps 2 and 4. A Redis runs it, whose Lua numbers are
// doubles.
func TestRealAcquireProposeScript(t *testing.T) {
	f := startFleet(t, 1)
	const (
		token, below, above int64 = 1790000000000001, 1790000000000000, 1790000000000002

		short, asked, long = time.Minute, time.Hour, 3 * time.Hour
		soon, retained     = 2 * time.Hour, 24 * time.Hour
		longer             = 7 * 24 * time.Hour
	)
	fence := func(n int64) stored { return stored{strconv.FormatInt(n, 10), soon} }
	kept := func(n int64) stored { return stored{strconv.FormatInt(n, 10), retained} }
	whole := kept // a refusal may refresh this one or not
	// Another client keeps these fences for longer or for ever. No client may shorten that.
	theirsFor := func(n int64) stored { return stored{strconv.FormatInt(n, 10), longer} }
	forEver := func(n int64) stored { return stored{strconv.FormatInt(n, 10), 0} }
	ours := func(ttl time.Duration) stored { return stored{"ours", ttl} }
	theirs := stored{"theirs", long}
	const highest int64 = 1<<53 - 1
	for i, tc := range []struct {
		name       string
		key, fence stored
		token      int64
		topUp      bool
		says       any // the reply, or a part of the error
		then       stored
		thenFence  stored
	}{
		{"free, never locked", absent, absent, token, false, 1, ours(asked), kept(token)},
		{"free, a lower fence", absent, fence(below), token, false, 1, ours(asked), kept(token)},
		{"free, the same fence", absent, whole(token), token, false, token, absent, whole(token)},
		{"free, a higher fence", absent, whole(above), token, false, above, absent, whole(above)},
		{"free, a fence for ever", absent, forEver(5), token, false, 1, ours(asked), forEver(token)},
		{"free, a higher fence for ever", absent, forEver(above), token, false, above, absent, forEver(above)},
		{"free, a fence for longer", absent, theirsFor(below), token, false, 1, ours(asked), theirsFor(token)},
		{"free, a higher fence for longer", absent, theirsFor(above), token, false, above, absent, theirsFor(above)},
		{"ours, a fence for longer", ours(short), theirsFor(below), token, false, 1, ours(asked), theirsFor(token)},
		{"ours, a fence for ever", ours(short), forEver(below), token, false, 1, ours(asked), forEver(token)},
		{"ours, a higher fence for longer", ours(short), theirsFor(above), token, false, above, ours(short), theirsFor(above)},
		{"somebody else's, a fence for longer", theirs, theirsFor(above), token, false, -above, theirs, theirsFor(above)},
		{"put back, a fence for longer", absent, theirsFor(below), token, true, 1, ours(asked), theirsFor(token)},
		{"put back, a higher fence for longer", absent, theirsFor(above), token, true, 1, ours(asked), theirsFor(above)},
		{"put back, a fence for ever", absent, forEver(below), token, true, 1, ours(asked), forEver(token)},
		{"no number, for ever", absent, stored{"x", 0}, token, false, "not a token", absent, stored{"x", 0}},
		{"ours, no fence", ours(short), absent, token, false, 1, ours(asked), kept(token)},
		{"ours, a lower fence", ours(short), fence(below), token, false, 1, ours(asked), kept(token)},
		{"ours, the same fence", ours(short), fence(token), token, false, 1, ours(asked), kept(token)},
		{"ours, a higher fence", ours(short), fence(above), token, false, above, ours(short), fence(above)},
		{"ours for longer", ours(long), fence(below), token, false, 1, ours(long), kept(token)},
		{"ours for longer, the same fence", ours(long), fence(token), token, false, 1, ours(long), kept(token)},
		{"somebody else's, no fence", theirs, absent, token, false, 0, theirs, absent},
		{"somebody else's, a lower fence", theirs, fence(below), token, false, -below, theirs, fence(below)},
		{"somebody else's, the same fence", theirs, fence(token), token, false, -token, theirs, fence(token)},
		{"somebody else's, a higher fence", theirs, fence(above), token, false, -above, theirs, fence(above)},
		{"another type, no fence", aList, absent, token, false, 0, aList, absent},
		{"another type", aList, fence(below), token, false, -below, aList, fence(below)},
		{"a fence of another type", absent, aList, token, false, "WRONGTYPE", absent, aList},
		{"a fence that is no number", absent, stored{"x", retained}, token, false, "not a token", absent, stored{"x", retained}},
		{"a fence below 0", ours(short), fence(-1), token, false, "not a token", ours(short), fence(-1)},
		{"a fence beyond doubles", absent, whole(highest + 1), token, false, "not a token", absent, whole(highest + 1)},
		{"the last token", absent, fence(highest - 1), highest, false, 1, ours(asked), kept(highest)},
		{"none after the last", absent, whole(highest), highest, false, highest, absent, whole(highest)},
		{"put back, no fence", absent, absent, token, true, 1, ours(asked), kept(token)},
		{"put back, a lower fence", absent, fence(below), token, true, 1, ours(asked), kept(token)},
		{"put back, the same fence", absent, fence(token), token, true, 1, ours(asked), kept(token)},
		{"put back, a higher fence", absent, fence(above), token, true, 1, ours(asked), kept(above)},
		{"put back though there", ours(long), fence(above), token, true, 1, ours(long), kept(above)},
		{"put back, somebody else's", theirs, fence(below), token, true, -below, theirs, fence(below)},
	} {
		key, fence, topUp := fmt.Sprint("key ", i), fmt.Sprint("fence ", i), "0"
		if tc.topUp {
			topUp = "1"
		}
		f.store(key, tc.key)
		f.store(fence, tc.fence)
		reply, err := f.admin[0].Eval(f.ctx, script.Propose.Text, []string{key, fence},
			"ours", asked.Milliseconds(), tc.token, retained.Milliseconds(), topUp).Result()
		if says, fails := tc.says.(string); fails {
			assert.ErrorContains(t, err, says, tc.name)
		} else {
			assert.NoError(t, err, tc.name)
			assert.EqualValues(t, tc.says, reply, tc.name)
		}
		f.isStored(key, tc.then)
		f.isStored(fence, tc.thenFence)
		if t.Failed() {
			require.FailNow(t, tc.name)
		}
	}
}
