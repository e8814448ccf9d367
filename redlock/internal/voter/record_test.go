package voter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlock/internal/asynclog"
)

func TestGuardWritesIdentityRecords(t *testing.T) {
	const never = -1
	sent := time.Now()
	now := time.UnixMilli(1_000_000) // by the server's clock
	for _, c := range []struct {
		name, text string
		known      time.Duration // how long ago the server took over, as far as the client knows
		stranger   bool
		since      time.Duration
		record     string
	}{
		{"none", "", never, false, never, "run:replication 0"},
		{"none, and we know of a takeover", "", 0, false, never, "run:replication 1000000"},
		{"none, and we knew before", "", 10 * time.Second, false, never, "run:replication 990102"},
		{"none, and we shall know", "", -time.Second, false, never, "run:replication 1000000"},
		{"its own", "run:replication 990000", never, false, 10 * time.Second, ""},
		{"its own, from the future", "run:replication 1990000", never, false, 0, ""},
		{"its own, without a date", "run:replication 0", never, false, never, ""},
		{"its own, without a date, and we know of a takeover", "run:replication 0", 10 * time.Second, false, never, "run:replication 990102"},
		{"its own, void", "run:replication 900000", 10 * time.Second, false, 100 * time.Second, "run:replication 990102"},
		{"another's", "other:replication 990000", never, true, never, "run:replication 1000000"},
		{"another's, and we know of a takeover", "other:replication 990000", 10 * time.Second, true, never, "run:replication 990102"},
		{"from before it was promoted", "run:other 990000", never, true, never, "run:replication 1000000"},
		{"garbage", "garbage", never, false, never, "run:replication 0"},
		{"garbage for a time", "run:replication x", never, false, never, "run:replication 0"},
		{"a negative time", "run:replication -5", never, false, never, "run:replication 0"},
		{"an absurd time", "run:replication 9223372036854775807", never, false, 0, ""},
	} {
		s := &Server{
			guard: &Guard{period: time.Minute, drift: clock.DefaultDrift},
			Info:  Info{Identity: Identity{"run", "replication"}, role: "master", promoted: true, now: now, record: parseRecord(c.text)},
			void:  record{"run:replication", 900000},
		}
		if c.known != never {
			s.changed = sent.Add(-c.known)
		}
		assert.Equal(t, c.stranger, s.others(), c.name)
		since, ok := s.dated()
		assert.Equal(t, c.since != never, ok, c.name)
		if ok {
			assert.Equal(t, c.since, since, c.name)
		}
		assert.Equal(t, c.record, s.wanted(sent), c.name)
		s.role = "slave"
		assert.Empty(t, s.wanted(sent), "a replica cannot be written to")
	}
	s := &Server{guard: &Guard{}, Info: Info{Identity: Identity{"run", "replication"}, role: "master", now: now}}
	// A master's replication id also changes when a first replica connects, for a backup.
	s.record = parseRecord("run:other 990000")
	assert.False(t, s.others())
	since, ok := s.dated()
	assert.True(t, ok, "it is the same server")
	assert.Equal(t, 10*time.Second, since)
	assert.Empty(t, s.wanted(sent))
	s.now, s.record = time.UnixMicro(1_000_000_001), parseRecord("other:replication 1")
	assert.Equal(t, "run:replication 1000001", s.wanted(sent), "not before it was found")
	s.now = time.Time{}
	assert.Empty(t, s.wanted(sent), "without the guard nobody asked")
}

// A client trusts or ignores the date in a server's own record, depending on when it last saw the
// previous server.
func TestGuardHeedsDates(t *testing.T) {
	const ms = time.Millisecond
	start := time.Now()
	const took = 100 * ms // between the question and the answer
	for _, c := range []struct {
		name      string
		before    string        // the identity that was there; empty if unknown
		mark      string        // the record at that time
		heard     time.Duration // from reading the last answer to sending the question
		promoted  bool
		now       string        // the record
		changed   time.Duration // time since the takeover when this answer was read; -1 if never
		void, new bool
	}{
		{"a first deployment", "", "", 0, false, "", -1, false, true},
		{"first met, and once a replica", "", "", 0, true, "", 0, false, true},
		{"first met, once a replica, and undated", "", "", 0, true, "run:id 0", 0, false, true},
		{"first met, and another's record", "", "", 0, false, "other:id 999000", 0, false, true},
		{"first met, and dated", "", "", 0, false, "run:id 999000", time.Second, false, false},
		{"first met, once a replica, and dated", "", "", 0, true, "run:id 999000", time.Second, false, false},
		{"another's place, undated", "other:id", "", time.Hour, false, "", 0, false, true},
		{"another's place, dated since", "other:id", "", time.Hour, false, "run:id 999000", time.Second, false, false},
		{"another's place, dated before", "other:id", "", time.Second, false, "run:id 990000", 0, true, true},
		{"another's place, dated when it was seen", "other:id", "", time.Second, false, "run:id 999000", 0, true, true},
		{"another's place, dated since unless its clock is slow", "other:id", "", 10*time.Second + 50*ms, false, "run:id 990000", 0, true, true},
		{"another's place, dated since by a slow clock, too", "other:id", "", 10*time.Second + 103*ms, false, "run:id 990000", 10 * time.Second, false, false},
		{"its own place after it was a replica", "run:other", "", time.Hour, true, "", 0, false, true},
		{"the same, undated", "run:id", "run:id 0", time.Hour, false, "run:id 0", -1, false, false},
		{"the same, and somebody has dated it", "run:id", "run:id 0", time.Second, false, "run:id 999000", time.Second, false, false},
		{"the same, and the date is known", "run:id", "run:id 999000", time.Second, false, "run:id 999000", -1, false, false},
	} {
		g := NewGuard(clock.System(), time.Minute, clock.DefaultDrift, 1, asynclog.New(nil), nil)
		s := g.Server(0, "node", "addr")
		sent := start
		read := sent.Add(took)
		now := Info{
			Identity: Identity{"run", "id"}, role: "master", uptime: time.Hour, promoted: c.promoted,
			now: time.UnixMilli(1_000_000), record: parseRecord(c.now),
		}
		if c.before != "" {
			s.known, s.heard = true, sent.Add(-c.heard)
			s.Identity, s.record = record{id: c.before}.identity(), parseRecord(c.mark)
		}
		_, write := s.Met(now, sent, read)
		if c.changed < 0 {
			assert.Zero(t, s.changed, c.name)
		} else {
			assert.Equal(t, c.changed, read.Sub(s.changed), c.name)
		}
		assert.Equal(t, c.void, s.void == s.Info.record && s.Info.record != (record{}), c.name)
		assert.Equal(t, c.new, write != "", "%s: %s", c.name, write)
	}
}

// Two clients that observe one takeover write different dates. The later one stays: neither client
// moves its own date back, and neither moves it again and again.
func TestGuardWitnessesAgreeOnADate(t *testing.T) {
	start := time.Now()
	var record string
	g := NewGuard(clock.System(), time.Minute, clock.DefaultDrift, 2, asynclog.New(nil), nil)
	first, second := g.Server(0, "first", "addr"), g.Server(1, "second", "addr")
	written, last := 0, start
	look := func(s *Server, after time.Duration) {
		at := start.Add(after)
		now := Info{
			Identity: Identity{"run", "id"}, role: "master", uptime: time.Hour, promoted: true,
			now: time.UnixMilli(1_000_000).Add(after), record: parseRecord(record),
		}
		if _, r := s.Met(now, at, at.Add(time.Duration(written)*time.Millisecond)); r != "" {
			record, last = r, at
			written++
		}
	}
	early := ""
	look(first, 0)
	early, record = record, ""
	look(second, 500*time.Millisecond)
	record = early // it arrives last
	for i := range 20 {
		look(second, time.Duration(i+1)*time.Second)
		look(first, time.Duration(i+1)*time.Second+time.Second/2)
	}
	assert.Equal(t, 3, written)
	assert.Equal(t, time.Second, last.Sub(start), "the second at its next look")
	assert.False(t, first.changed.Before(start.Add(500*time.Millisecond)))
	assert.InDelta(t, 500, second.changed.Sub(start).Milliseconds(), 50)
	assert.InDelta(t, 500, first.changed.Sub(start).Milliseconds(), 50)
}

func TestGuardTellsAServerFromItsSuccessor(t *testing.T) {
	now := Info{Identity: Identity{"run", "replication"}}
	assert.False(t, now.Follows(Identity{"run", "replication"}))
	assert.True(t, now.Follows(Identity{"other", "replication"}))
	assert.False(t, now.Follows(Identity{"run", "before a backup"}))
	now.promoted = true
	assert.True(t, now.Follows(Identity{"run", "when it was a replica"}))
	assert.False(t, now.Follows(Identity{"run", "replication"}))
}
