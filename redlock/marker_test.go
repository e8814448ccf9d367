package redlock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestMarkers(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	s := sighting{identity: identity{"run", "replication"}, now: now, promoted: true}
	for _, c := range []struct {
		name, text string
		new        bool
		stranger   bool
		since      time.Duration // -1: not known
		remark     string
	}{
		{"none", "", false, false, -1, "run:replication 0"},
		{"none, and we know who was there", "", true, false, -1, "run:replication 1000000"},
		{"its own", "run:replication 990000", false, false, 10 * time.Second, ""},
		{"its own, from the future", "run:replication 1990000", false, false, 0, ""},
		{"its own, without a time", "run:replication 0", false, false, -1, ""},
		{"its own, without a time, and we know who was there", "run:replication 0", true, false, -1, "run:replication 1000000"},
		{"another's", "other:replication 990000", false, true, -1, "run:replication 1000000"},
		{"from before it was promoted", "run:other 990000", false, true, -1, "run:replication 1000000"},
		{"garbage", "garbage", false, false, -1, "run:replication 0"},
		{"garbage for a time", "run:replication x", false, false, -1, "run:replication 0"},
		{"a negative time", "run:replication -5", false, false, -1, "run:replication 0"},
		{"an absurd time", "run:replication 9223372036854775807", false, false, 0, ""},
	} {
		s.mark = readMarker(c.text)
		assert.Equal(t, c.stranger, s.stranger(), c.name)
		since, ok := s.dated()
		assert.Equal(t, c.since >= 0, ok, c.name)
		if ok {
			assert.Equal(t, c.since, since, c.name)
		}
		assert.Equal(t, c.remark, s.remark(c.new), c.name)
	}
	// A master's replication id changes too when a first replica comes, for a backup.
	s.promoted, s.mark = false, readMarker("run:other 990000")
	assert.False(t, s.stranger())
	assert.Equal(t, "run:replication 990000", s.remark(false))
	s.now = time.Time{}
	assert.Empty(t, s.remark(true), "without the guard nobody asked")
}

func TestWhoFollowsWhom(t *testing.T) {
	now := sighting{identity: identity{"run", "replication"}}
	assert.False(t, now.follows(identity{"run", "replication"}))
	assert.True(t, now.follows(identity{"other", "replication"}))
	assert.False(t, now.follows(identity{"run", "before a backup"}))
	now.promoted = true
	assert.True(t, now.follows(identity{"run", "when it was a replica"}))
	assert.False(t, now.follows(identity{"run", "replication"}))
}
