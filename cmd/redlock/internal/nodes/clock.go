package nodes

import (
	"fmt"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/cli"
)

// clockReading is how far a server's clock is ahead of this host's, and by how much that may be
// wrong: half of the round trip.
type clockReading struct {
	Offset cli.Micros `json:"offset_us"`
	Within cli.Micros `json:"within_us"`
}

// tolerable is how far two clocks may differ. A larger difference suggests that nothing
// synchronizes one of them.
const tolerable = time.Second

func tellClock(m *master) string {
	off := m.astray()
	if off == 0 {
		return ""
	}
	return fmt.Sprintf("Its clock is %s this host's. Locks do not mind, but the step that sets it right does: "+
		"a clock that jumps forward ends locks too early. Let NTP slew it.", apart(off))
}

// astray returns how far the master's clock is ahead of this host's, or zero if the difference is
// tolerable or unknown.
func (m *master) astray() time.Duration {
	if m.Clock == nil || time.Duration(max(m.Clock.Offset, -m.Clock.Offset)-m.Clock.Within) <= tolerable {
		return 0
	}
	return time.Duration(m.Clock.Offset)
}

func apart(off time.Duration) string {
	if off < 0 {
		return (-off).Round(100*time.Millisecond).String() + " behind"
	}
	return off.Round(100*time.Millisecond).String() + " ahead of"
}

// hostAstray warns that this host's clock is probably the wrong one, if it differs from the clocks
// of all masters by about the same. Otherwise it returns "".
func hostAstray(masters []*master) string {
	var least, most time.Duration
	known := 0
	for _, m := range masters {
		if m.Clock == nil {
			continue
		}
		off := m.astray()
		if off == 0 {
			return ""
		}
		if known++; known == 1 {
			least, most = off, off
		}
		least, most = min(least, off), max(most, off)
	}
	if known < 2 || clock.Sum(most, -least) > tolerable {
		return ""
	}
	return fmt.Sprintf("This host's clock is %s those of all masters. Locks do not mind; "+
		"with fencing, acquisitions of the client whose clock is behind take a second round trip. Let NTP set it.", apart(-least))
}
