package timeline

import (
	"fmt"
	"strings"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// drawClients draws what clients did, and over it the times when they could do nothing.
func (p *picture) drawClients() {
	for _, l := range p.clients {
		p.labels = nil
		for i, a := range p.attempts {
			if row, seen := p.row[i]; seen && a.client == l.id {
				p.attempt(a, l.body+float64(row)*rowHeight)
			}
		}
		still, gone := pauses(p.run.Events, l.id)
		for _, s := range still {
			if p.meets(s.from, s.to) {
				p.rect(p.bar(s.from, s.to, l.body-2, float64(l.rows)*rowHeight+4, 1.5), duringText("paused", s),
					attrs{"class", "paused", "fill", "url(#" + p.prefix + "-still)", "stroke", stillness, "stroke-width", 0.8})
			}
		}
		for _, s := range gone {
			p.death(l, s)
		}
		for _, label := range p.labels {
			label()
		}
	}
}

func duringText(what string, s stint) string {
	if s.to == history.Never {
		return fmt.Sprintf("%s from %s ms on", what, millis(s.from))
	}
	return fmt.Sprintf("%s for %s ms: %s to %s ms", what, millis(s.to-s.from), millis(s.from), millis(s.to))
}

func (p *picture) death(l lane, s stint) {
	if !p.meets(s.from, s.to) {
		return
	}
	h := float64(l.rows)*rowHeight + 4
	p.rect(p.bar(s.from, s.to, l.body-2, h, 1.5), duringText("dead", s),
		attrs{"class", "dead", "fill", ink, "fill-opacity", 0.16})
	if !p.sees(s.from) {
		return
	}
	p.rect(p.bar(s.from, s.from, l.body-2, h, 2), "", attrs{"fill", ink})
	if room := p.x(s.to) - p.x(s.from); room > 34 {
		p.text(p.x(s.from)+6, l.body+float64(l.rows)*rowHeight/2+4, "died", attrs{"font-size", 10.5, "font-weight", "bold"})
	}
}

// attempt draws one acquisition in its row: a thin bar while it waits, a thick one while it
// holds the lock, and a pale one after that.
func (p *picture) attempt(a attempt, y float64) {
	c := paintOf(a.client)
	tip := a.tip()
	barY := y + (rowHeight-barHeight)/2
	answered := min(a.answered, a.quit)
	if a.asked < answered && p.meets(a.asked, answered) {
		p.rect(p.bar(a.asked, answered, y+rowHeight/2-2, 4, 1), tip,
			attrs{"class", "wait", "fill", c.fill, "fill-opacity", 0.8, "stroke", ink, "stroke-opacity", 0.5, "stroke-width", 0.4})
	}
	if a.denied {
		if p.sees(a.answered) {
			p.cross(p.x(a.answered), y+rowHeight/2, 3, tip, attrs{"class", "denied", "stroke", ink, "stroke-opacity", 0.75, "stroke-width", 1.5})
		}
		return
	}
	if !a.held() {
		return
	}
	if from, to := max(a.answered, a.stop()), a.tail(); from < to && p.meets(from, to) {
		p.rect(p.bar(from, to, barY, barHeight, 1), tip, attrs{"class", "tail", "fill", c.fill, "fill-opacity", 0.3, "stroke", c.fill, "stroke-width", 0.8})
	}
	stop := max(a.answered, a.stop())
	if !p.meets(a.answered, stop) {
		return
	}
	b := p.bar(a.answered, stop, barY, barHeight, 1.5)
	p.rect(b, tip, attrs{"class", "hold", "data-lock", lockName(a.client, a.op), "fill", c.fill, "stroke", ink, "stroke-opacity", 0.55, "stroke-width", 0.6})
	p.labels = append(p.labels, func() { p.holdLabel(a, b) })
	if a.lock.Ended < a.lock.Releasing && p.sees(a.lock.Ended) {
		x, m := p.x(a.lock.Ended), y+rowHeight/2
		p.shape("path", tip, attrs{"class", "ended", "d", fmt.Sprintf("M%s %sL%s %sL%s %sL%s %sZ",
			px(x-4), px(m), px(x), px(m-5), px(x+4), px(m), px(x), px(m+5)), "fill", paper, "stroke", ink, "stroke-width", 1.3})
	}
}

// holdLabel writes as much of the lock's name on a bar as fits. If there are several keys, the
// key comes first, because holds of different keys may overlap.
func (p *picture) holdLabel(a attempt, b box) {
	const size = 10.0
	names := []string{fmt.Sprintf("#%d", a.op)}
	if len(p.keys) > 1 {
		names = []string{clean(a.key) + " " + names[0], clean(a.key), names[0]}
	}
	for _, s := range names {
		if s == "" || width(s, size) > b.w-6 {
			continue
		}
		c := paintOf(a.client)
		// The halo keeps it legible under the hatch of a pause.
		p.text(b.x+b.w/2, b.y+b.h/2+3.7, s, attrs{"class", "hold-name", "font-size", size, "text-anchor", "middle", "fill", c.ink,
			"stroke", c.fill, "stroke-width", 3.0, "paint-order", "stroke", "pointer-events", "none"})
		return
	}
}

// tip returns the tooltip of an acquisition.
func (a attempt) tip() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s %q\nasked at %s ms", lockName(a.client, a.op), a.key, millis(a.asked))
	switch {
	case a.denied:
		fmt.Fprintf(&s, "\ndenied at %s ms", millis(a.answered))
	case !a.held():
		s.WriteString("\nnever answered")
	default:
		fmt.Fprintf(&s, "\nheld from %s to %s ms (%s ms)", millis(a.answered), millis(a.lock.End()), millis(a.lock.End()-a.answered))
		fmt.Fprintf(&s, "\nvalid until %s ms", millis(a.lock.Until))
		if a.renewals > 0 {
			fmt.Fprintf(&s, ", extended %d times", a.renewals)
		}
		if a.lock.Releasing != history.Never {
			fmt.Fprintf(&s, "\ngiven up at %s ms", millis(a.lock.Releasing))
		}
		if a.released != history.Never {
			fmt.Fprintf(&s, "\nreleased at %s ms", millis(a.released))
		}
		if a.lock.Ended != history.Never {
			fmt.Fprintf(&s, "\ncontext done at %s ms", millis(a.lock.Ended))
		}
	}
	if a.err != "" {
		s.WriteString("\n" + clean(a.err))
	}
	return s.String()
}
