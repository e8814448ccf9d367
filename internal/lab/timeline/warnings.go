package timeline

import (
	"fmt"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
)

const (
	alarmRow  = 22.0
	alarmSize = 11.5 * boldness // to compute its width
	maxAlarms = 6               // rows of texts; more would push the lanes out of sight
)

// warning is a violation and the place of its text.
type warning struct {
	history.Violation
	number   int
	from, to time.Duration
	text     string
	row      int // negative if there is no room
	left     float64
}

// between returns the time of a violation: from when it could be seen, as long as all its
// locks were held or all their contexts lasted. If neither lasted, it is an instant.
func between(v history.Violation) (from, to time.Duration) {
	if len(v.Locks) < 2 {
		return v.At, v.At
	}
	held, believed := history.Never, history.Never
	for _, l := range v.Locks {
		held = min(held, l.End())
		believed = min(believed, l.Ended)
	}
	switch {
	case held > v.At:
		return v.At, held
	case believed > v.At && believed != history.Never:
		return v.At, believed
	}
	return v.At, v.At
}

func (p *picture) warnings() (list []warning, labels int) {
	var packed rows
	for i, v := range p.run.Violations {
		w := warning{Violation: v, number: i + 1}
		w.from, w.to = between(v)
		if !p.meets(w.from, w.to) {
			continue
		}
		w.text = fit("VIOLATION, "+warningText(v), alarmSize, leastPlot-40)
		room := width(w.text, alarmSize) + 16
		w.left = max(gutter, min(p.x(w.from)-8, p.right()-room))
		w.row = packed.place(w.left, w.left+room+6)
		if w.row >= maxAlarms {
			w.row = -1
		}
		list = append(list, w)
	}
	return list, min(maxAlarms, len(packed.ends))
}

func warningText(v history.Violation) string {
	s := clean(v.Text)
	switch {
	case v.Rule == "":
		return s
	case s == "":
		return clean(v.Rule)
	}
	return clean(v.Rule) + ": " + s
}

// drawWarnings draws the violations in front of everything else: a red band over all lanes,
// its text above, and red frames around the holds in question.
func (p *picture) drawWarnings() {
	for _, w := range p.alarms {
		top := p.head + 2
		if w.row >= 0 {
			top += float64(w.row)*alarmRow + alarmRow - 6
		}
		b := p.bar(w.from, w.to, top, p.bottom-top, 3)
		tip := fmt.Sprintf("violation %d: %s\n%s to %s ms", w.number, warningText(w.Violation), millis(w.from), millis(w.to))
		p.rect(b, tip, attrs{"id", fmt.Sprintf("%s-violation-%d", p.prefix, w.number), "class", "violation", "fill", alarm, "fill-opacity", 0.22})
		for _, x := range []float64{b.x, b.x + b.w} {
			p.line(x, top, x, p.bottom, attrs{"stroke", alarm, "stroke-width", 1.6})
		}
		p.frame(w)
	}
	for _, w := range p.alarms {
		if w.row < 0 {
			continue
		}
		y := p.head + float64(w.row)*alarmRow
		p.rect(box{w.left, y, width(w.text, alarmSize) + 16, 18}, warningText(w.Violation), attrs{"class", "violation-text", "rx", 3.0, "fill", alarm})
		p.text(w.left+8, y+13, w.text, attrs{"font-size", 11.5, "font-weight", "bold", "fill", "#ffffff", "pointer-events", "none"})
	}
}

// frame outlines the holds of a violation.
func (p *picture) frame(w warning) {
	for _, lock := range w.Locks {
		for _, l := range p.clients {
			for i, a := range p.attempts {
				row, seen := p.row[i]
				if !seen || a.client != l.id || a.client != lock.Client || a.op != lock.Op || !a.held() {
					continue
				}
				stop := max(a.answered, a.lock.End())
				if w.Rule == history.Context {
					stop = max(stop, a.tail())
				}
				if !p.meets(a.answered, stop) {
					continue
				}
				b := p.bar(a.answered, stop, l.body+float64(row)*rowHeight+(rowHeight-barHeight)/2-1, barHeight+2, 3)
				// Drawn again over the band, so that it keeps its client's colour.
				p.rect(b, a.tip(), attrs{"class", "framed", "data-lock", lockName(a.client, a.op),
					"fill", paintOf(a.client).fill, "fill-opacity", 0.85, "stroke", alarm, "stroke-width", 2.6})
				p.holdLabel(a, b)
			}
		}
	}
}
