package timeline

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// SVG writes a picture of the run: time from left to right, a lane for each client and each
// node, and violations across the lanes.
func SVG(w io.Writer, r Run) error {
	r = r.ordered()
	p := newPicture(r, newView(0, r.End), "run", cmp.Or(r.Title, "A run"))
	p.draw()
	_, err := w.Write(p.Bytes())
	return err
}

// picture draws the part of a run that is in a view.
type picture struct {
	canvas
	view
	run      Run
	prefix   string // of the ids, because a page may hold several pictures
	title    string // empty if the page has it
	legendY  float64
	head     float64 // y of the texts of violations
	attempts []attempt
	stored   []possession
	keys     []string
	clients  []lane
	nodes    []lane
	global   []mark
	globals  int         // rows for their names
	alarms   []warning   // violations
	alarmed  int         // rows for their texts
	row      map[int]int // of each attempt in view
	labels   []func()    // texts to draw last in a lane
	top      float64     // of the first lane
	bottom   float64     // of the last lane
}

func newPicture(r Run, v view, prefix, title string) *picture {
	p := &picture{
		view: v, run: r, prefix: prefix, title: title,
		attempts: attempts(r.Events), stored: possessions(r.Events), keys: r.keys(),
	}
	p.layout()
	return p
}

const (
	fonts   = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"
	titleY  = 24.0
	legendH = 18.0 // from the middle of the legend to what follows
	axisH   = 20.0
)

// layout stacks the lanes. The height of each depends on what it shows in this view.
func (p *picture) layout() {
	p.legendY = titleY + 20
	if p.title == "" {
		p.legendY = 18
	}
	p.head = p.legendY + legendH
	p.alarms, p.alarmed = p.warnings()
	faults := func(of func(history.Event) bool) []history.Event {
		var list []history.Event
		for _, e := range p.run.Events {
			if e.Kind == history.Fault && of(e) && p.meets(e.At, max(e.At, e.Until)) {
				list = append(list, e)
			}
		}
		return list
	}
	p.global, p.globals = p.marks(faults(func(e history.Event) bool { return e.Client == 0 && e.Node == 0 }), faultText)

	y := p.head + float64(p.alarmed)*alarmRow + axisH + float64(p.globals)*labelRow + 2
	p.top = y
	add := func(list []lane, l lane, body float64) []lane {
		l.y, l.body = y, y+lanePad+float64(l.labels)*labelRow
		l.h = l.body + body + lanePad - y
		y += l.h + laneGap
		return append(list, l)
	}
	p.row = map[int]int{}
	for _, id := range p.run.clientIDs() {
		l := lane{id: id}
		l.faults, l.labels = p.marks(faults(func(e history.Event) bool { return e.Client == id }), func(e history.Event) string {
			if e.Node > 0 {
				return fmt.Sprintf("n%d: %s", e.Node, faultText(e))
			}
			return faultText(e)
		})
		var packed rows
		for i, a := range p.attempts {
			if a.client == id && p.meets(a.asked, a.until()) {
				p.row[i] = packed.place(p.bar(a.asked, a.until(), 0, 0, 2).span())
			}
		}
		l.rows = max(1, len(packed.ends))
		p.clients = add(p.clients, l, float64(l.rows)*rowHeight)
	}
	if len(p.clients) > 0 {
		y += 6
	}
	for _, id := range p.run.nodeIDs() {
		l := lane{id: id, rows: max(1, len(p.keys))}
		l.faults, l.labels = p.marks(faults(func(e history.Event) bool { return e.Node == id && e.Client == 0 }), faultText)
		p.nodes = add(p.nodes, l, float64(l.rows)*keyHeight+voteRow)
	}
	p.bottom = y - laneGap
}

func (b box) span() (left, right float64) { return b.x, b.x + b.w }

// draw paints from the back to the front.
func (p *picture) draw() {
	w, h := p.right()+margin, p.bottom+axisH+8
	p.open("svg", attrs{
		"xmlns", "http://www.w3.org/2000/svg", "role", "img", "width", w, "height", h, "viewBox", fmt.Sprintf("0 0 %s %s", px(w), px(h)),
		"font-family", fonts, "font-size", 11.0, "fill", ink,
	})
	p.WriteByte('\n')
	if p.title != "" {
		p.open("title", nil)
		p.escape(clean(p.title))
		p.close("title")
	}
	p.defs()
	p.rect(box{0, 0, w, h}, "", attrs{"class", "paper", "fill", paper})
	if p.title != "" {
		p.header()
	}
	p.legend()
	p.floor()
	p.axis()
	p.shades()
	p.drawClients()
	p.drawNodes()
	p.drawWarnings()
	p.names()
	p.close("svg")
}

// defs writes the hatch of a paused client.
func (p *picture) defs() {
	p.WriteString("<defs>")
	p.open("pattern", attrs{"id", p.prefix + "-still", "width", 6, "height", 6, "patternUnits", "userSpaceOnUse", "patternTransform", "rotate(45)"})
	p.rect(box{0, 0, 6, 6}, "", attrs{"fill", paper, "fill-opacity", 0.45})
	p.rect(box{0, 0, 2.4, 6}, "", attrs{"fill", stillness, "fill-opacity", 0.85})
	p.close("pattern")
	p.WriteString("</defs>\n")
}

// floor draws the background of the lanes.
func (p *picture) floor() {
	for _, lanes := range [][]lane{p.clients, p.nodes} {
		for i, l := range lanes {
			fill := stripe
			if i%2 == 1 {
				fill = paper
			}
			p.rect(box{0, l.y, p.right(), l.h}, "", attrs{"fill", fill})
			p.line(0, l.y+l.h+laneGap/2, p.right(), l.y+l.h+laneGap/2, attrs{"stroke", grid})
		}
	}
}

// axis draws ticks above and below the lanes, with lines between.
func (p *picture) axis() {
	step := p.step()
	top := p.top - float64(p.globals)*labelRow - 6
	decimals := 0
	for unit := time.Second; step%unit != 0 && decimals < 6; unit /= 10 {
		decimals++
	}
	for t := (p.from + step - 1) / step * step; t <= p.to && t >= p.from; t += step {
		x := p.x(t)
		p.line(x, top, x, p.bottom+4, attrs{"stroke", rule, "stroke-opacity", 0.7, "stroke-dasharray", "2 3"})
		label := fmt.Sprintf("%.*f s", decimals, t.Seconds())
		for _, y := range []float64{top - 3, p.bottom + 16} {
			p.text(x, y, label, attrs{"text-anchor", "middle", "fill", faint})
		}
		if t > math.MaxInt64-step {
			break
		}
	}
}

// names writes the names of the lanes. It comes last, so that nothing covers them.
func (p *picture) names() {
	for _, l := range p.clients {
		c := paintOf(l.id)
		mid := l.body + float64(l.rows)*rowHeight/2
		p.rect(box{10, mid - 6, 12, 12}, "", attrs{"rx", 2.0, "fill", c.fill})
		p.text(28, mid+4, fmt.Sprintf("client %d", l.id), attrs{"font-size", 12.0, "font-weight", "bold"})
	}
	for _, l := range p.nodes {
		mid := l.body + float64(l.rows)*keyHeight/2
		p.text(10, mid+4, fmt.Sprintf("node %d", l.id), attrs{"font-size", 12.0, "font-weight", "bold"})
		if len(p.keys) < 2 {
			continue
		}
		for i, k := range p.keys {
			p.text(gutter-5, l.body+float64(i)*keyHeight+9, fit(clean(k), 9, gutter-72),
				attrs{"font-size", 9.0, "fill", faint, "text-anchor", "end"})
		}
	}
	p.line(gutter, p.top-4, gutter, p.bottom, attrs{"stroke", rule})
}
