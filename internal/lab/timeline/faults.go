package timeline

import (
	"fmt"
)

// shades draws faults below everything else that happened meanwhile.
func (p *picture) shades() {
	for _, m := range p.global {
		p.shade(m, p.top-float64(p.globals)*labelRow-4, p.bottom, p.top-float64(p.globals)*labelRow-4, 0.08)
	}
	for _, lanes := range [][]lane{p.clients, p.nodes} {
		for _, l := range lanes {
			for _, m := range l.faults {
				p.shade(m, l.y, l.y+l.h, l.y+1, 0.2)
			}
		}
	}
}

// shade draws one fault between top and bottom. Its name is in a row below names.
func (p *picture) shade(m mark, top, bottom, names, opacity float64) {
	e := m.event
	if e.Until > e.At {
		tip := duringText(m.text, stint{from: e.At, to: e.Until})
		b := p.bar(e.At, e.Until, top, bottom-top, 1)
		p.rect(b, tip, attrs{"class", "fault", "fill", trouble, "fill-opacity", opacity})
		for _, x := range []float64{b.x, b.x + b.w} {
			p.line(x, top, x, bottom, attrs{"stroke", trouble, "stroke-width", 1.0})
		}
	} else {
		p.rect(p.bar(e.At, e.At, top, bottom-top, 2), fmt.Sprintf("%s at %s ms", m.text, millis(e.At)),
			attrs{"class", "fault", "fill", trouble})
	}
	if m.row < 0 {
		return
	}
	anchor := "start"
	if m.end {
		anchor = "end"
	}
	p.text(m.x, names+float64(m.row)*labelRow+10.5, m.text,
		attrs{"class", "fault-name", "font-size", 10.5, "font-weight", "bold", "fill", trouble, "text-anchor", anchor, "pointer-events", "none"})
}
