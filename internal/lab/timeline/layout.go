package timeline

import (
	"math"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// Sizes in pixels.
const (
	gutter    = 118.0 // names of lanes
	margin    = 22.0  // right of the time
	leastPlot = 1060.0
	mostPlot  = 16000.0
	perSecond = 190.0
	rowHeight = 20.0 // of an acquisition
	barHeight = 15.0
	keyHeight = 12.0 // of a key on a node
	labelRow  = 14.0 // of the names of faults
	voteRow   = 9.0
	lanePad   = 4.0
	laneGap   = 3.0
)

// view is the part of a run that a picture shows, and maps instants to places.
type view struct {
	from, to time.Duration
	plot     float64 // width of the time
}

func newView(from, to time.Duration) view {
	if to <= from {
		to = from + time.Second // an empty run still has an axis
	}
	w := math.Ceil((to - from).Seconds() * perSecond)
	return view{from: from, to: to, plot: max(leastPlot, min(mostPlot, w))}
}

// x returns the place of an instant, or the edge if it is not in view.
func (v view) x(t time.Duration) float64 {
	t = max(v.from, min(v.to, t))
	return gutter + v.plot*float64(t-v.from)/float64(v.to-v.from)
}

func (v view) right() float64 { return gutter + v.plot }

func (v view) sees(t time.Duration) bool { return t >= v.from && t <= v.to }

// meets reports whether any instant from from to to is in view.
func (v view) meets(from, to time.Duration) bool {
	return from <= v.to && to >= v.from && from <= to
}

// bar returns the box of a time, at least least wide but never beyond the edge.
func (v view) bar(from, to time.Duration, y, h, least float64) box {
	x1, x2 := v.x(from), v.x(to)
	if x2-x1 < least {
		x2 = x1 + least
	}
	if over := x2 - v.right(); over > 0 {
		x1, x2 = max(gutter, x1-over), v.right()
	}
	return box{x1, y, x2 - x1, h}
}

// step returns the distance of ticks: 1, 2 or 5 times a power of ten, and at least 70 px.
func (v view) step() time.Duration {
	for unit := time.Microsecond; ; unit *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			step := n * unit
			if v.plot*float64(step)/float64(v.to-v.from) >= 70 || step > math.MaxInt64/20 {
				return step
			}
		}
	}
}

// rows packs things of some width from left to right: each goes to the first row where it
// overlaps none before it.
type rows struct{ ends []float64 }

func (r *rows) place(left, right float64) int {
	for i, end := range r.ends {
		if left >= end {
			r.ends[i] = right
			return i
		}
	}
	r.ends = append(r.ends, right)
	return len(r.ends) - 1
}

// lane is the strip of a client or a node.
type lane struct {
	id     int
	y, h   float64
	faults []mark
	labels int     // rows for the names of faults
	body   float64 // y below the names
	rows   int     // for acquisitions or keys
}

// mark is a fault in a lane.
type mark struct {
	event history.Event
	text  string
	row   int // of its name; negative if there is no room
	x     float64
	end   bool // the name ends at x instead of beginning there
}

// maxLabels bounds the rows of names in a lane. A fault without room for its name still has
// its shade and its tooltip.
const maxLabels = 3

// marks places the names of faults.
func (v view) marks(faults []history.Event, name func(history.Event) string) (list []mark, labels int) {
	var packed rows
	for _, e := range faults {
		m := mark{event: e, text: short(name(e), 48), x: v.x(e.At) + 4}
		w := width(m.text, 10.5) + 8
		left := m.x
		if m.x+w > v.right() {
			m.x, m.end = v.x(e.At)-4, true
			left = m.x - w
		}
		if m.end && left < gutter {
			m.x, m.end, left = gutter+4, false, gutter
		}
		m.row = packed.place(left, left+w)
		if m.row >= maxLabels {
			m.row = -1
		}
		list = append(list, m)
	}
	return list, min(maxLabels, len(packed.ends))
}
