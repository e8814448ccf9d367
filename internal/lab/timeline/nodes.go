package timeline

import (
	"fmt"
	"slices"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// drawNodes draws which lock each key of each node belonged to, and how the nodes voted.
func (p *picture) drawNodes() {
	for _, l := range p.nodes {
		for _, s := range p.stored {
			if s.node == l.id && p.meets(s.from, s.to) {
				p.possession(s, l)
			}
		}
		for _, e := range p.run.Events {
			if e.Kind == history.Voted && e.Node == l.id && p.sees(e.At) {
				p.vote(e, l.body+float64(l.rows)*keyHeight+voteRow/2+0.5)
			}
		}
	}
}

func (p *picture) possession(s possession, l lane) {
	c := paintOf(s.client)
	row, _ := slices.BinarySearch(p.keys, s.key)
	b := p.bar(s.from, s.to, l.body+float64(row)*keyHeight+1, keyHeight-2, 1)
	tip := fmt.Sprintf("node %d: %q belongs to %s\nfrom %s to %s ms (%s)",
		s.node, s.key, lockName(s.client, s.op), millis(s.from), millis(s.to), s.how)
	if s.renewals > 0 {
		tip += fmt.Sprintf("\nextended %d times", s.renewals)
	}
	p.rect(b, tip, attrs{"class", "stored", "fill", c.fill, "fill-opacity", 0.7, "stroke", ink, "stroke-opacity", 0.35, "stroke-width", 0.5})
	name := fmt.Sprintf("c%d", s.client)
	if full := lockName(s.client, s.op); width(full, 8.5) <= b.w-4 {
		name = full
	}
	if s.client > 0 && width(name, 8.5) <= b.w-3 {
		p.text(b.x+b.w/2, b.y+8.2, name, attrs{"font-size", 8.5, "text-anchor", "middle", "fill", "#000000", "pointer-events", "none"})
	}
}

func (p *picture) vote(e history.Event, y float64) {
	c, v, x := paintOf(e.Client), voteOf(e), p.x(e.At)
	tip := fmt.Sprintf("%s ms: node %d, %s: %s %s", millis(e.At), e.Node, lockName(e.Client, e.Op), v, clean(plainVote(e)))
	class := "vote " + string(v)
	switch v {
	case granted:
		p.shape("circle", tip, attrs{"class", class, "cx", x, "cy", y, "r", 2.6, "fill", c.fill, "stroke", ink, "stroke-width", 0.5})
	case refused:
		p.shape("circle", tip, attrs{"class", class, "cx", x, "cy", y, "r", 2.4, "fill", paper, "stroke", faint, "stroke-width", 0.9})
	case failed:
		p.cross(x, y, 2.6, tip, attrs{"class", class, "stroke", ink, "stroke-width", 1.3})
	}
}
