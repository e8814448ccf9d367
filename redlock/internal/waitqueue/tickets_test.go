package waitqueue

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

func TestTicketsGrow(t *testing.T) {
	var tickets tickets
	us := func(n int) time.Time { return in(time.Duration(n) * time.Microsecond) }
	t0 := now.UnixMicro()
	assert.Equal(t, t0, tickets.draw(now))
	assert.Equal(t, t0+1, tickets.draw(now), "in the same microsecond")
	assert.Equal(t, t0+2, tickets.draw(in(-time.Second)), "of a clock that was set back")
	assert.Equal(t, t0+10, tickets.draw(us(10)))
	assert.False(t, tickets.follow(t0+10, us(10)), "its clock is as ours")
	assert.False(t, tickets.follow(1, us(10)))
	assert.True(t, tickets.follow(t0+5_000_000, us(20)))
	assert.False(t, tickets.follow(t0+5_000_000, us(20)), "we know")
	assert.Equal(t, t0+5_000_001, tickets.draw(us(20)))
	assert.Equal(t, t0+5_000_011, tickets.draw(us(30)))
	assert.Equal(t, "9007199254740991", protocol.TicketText(maxTicket))
}

func TestTicketsOfClocksThatAreWrong(t *testing.T) {
	for _, wrong := range []time.Time{{}, time.Unix(0, 0), time.Unix(-1e9, 0), time.UnixMicro(mostCounted + 1), now.AddDate(200, 0, 0), time.UnixMicro(math.MaxInt64)} {
		var tickets tickets
		assert.Equal(t, int64(minTicket), tickets.draw(wrong), "%v: above all times", wrong)
		assert.Equal(t, int64(minTicket+1), tickets.draw(wrong))
		assert.Equal(t, int64(minTicket+7), tickets.draw(wrong.Add(7*time.Microsecond)))
		assert.True(t, tickets.follow(now.UnixMicro(), wrong), "and goes by any other")
		assert.Equal(t, now.UnixMicro()+1, tickets.draw(wrong))
	}
}

// The ticket clock follows any ticket that leaves decades of numbers above it, and no other.
func TestTicketsFollow(t *testing.T) {
	for _, ahead := range []int64{now.Add(25 * time.Hour).UnixMicro(), mostCounted, mostFollowed} {
		var tickets tickets
		assert.True(t, tickets.follow(ahead, now))
		assert.Equal(t, ahead+1, tickets.draw(now))
	}
	for _, nobodys := range []int64{mostFollowed + 1, maxTicket, math.MaxInt64, 0, -1, math.MinInt64} {
		var tickets tickets
		assert.False(t, tickets.follow(nobodys, now))
		assert.Equal(t, now.UnixMicro(), tickets.draw(now))
	}
	const year = 365 * 24 * 3600 * 1_000_000
	assert.Greater(t, (maxTicket-mostFollowed)/year, 70)
	assert.Greater(t, (mostFollowed-mostCounted)/year, 70)
}

// Once the ticket clock follows the others, setting our clock right does not move our tickets.
func TestTicketsAreNotMovedByASetClock(t *testing.T) {
	var tickets tickets
	start := time.Now()
	tickets.draw(start)
	set := start.Add(time.Second)
	assert.True(t, tickets.follow(start.Add(56*365*24*time.Hour).UnixMicro(), set))
	before := tickets.draw(set)
	assert.Equal(t, before+1_000_000, tickets.draw(set.Add(time.Second)))
}
