package timeline

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// maxCloseUps bounds the pictures of single violations: the first ones are enough to
// understand a run that breaks a rule all the time.
const maxCloseUps = 3

// HTML writes a page that needs no other file: the verdict, the command that replays the run,
// its picture, close-ups of violations, and the text.
func HTML(w io.Writer, r Run) error {
	r = r.ordered()
	var text bytes.Buffer
	if err := Text(&text, Run{Nodes: r.Nodes, Clients: r.Clients, End: r.End, Events: r.Events, Violations: r.Violations, Verdict: r.Verdict}); err != nil {
		return err
	}
	p := page{title: clean(r.Title), command: clean(r.Command), verdict: verdict(r), text: text.String()}
	if p.title == "" {
		p.title = "A run"
	}
	for i, v := range r.Violations {
		p.violations = append(p.violations, pageViolation{
			at: millis(v.At), text: warningText(v), anchor: fmt.Sprintf("run-violation-%d", i+1),
		})
	}
	whole := newView(0, r.End)
	var views []view // the close-ups so far: violations often come together
	for i, v := range r.Violations {
		near := closeUp(v, whole)
		seen := slices.ContainsFunc(views, func(v2 view) bool { return v2.sees(v.At) })
		if seen || !whole.sees(v.At) || len(views) == maxCloseUps || near.to-near.from > (whole.to-whole.from)/2 {
			continue
		}
		views = append(views, near)
		title := fmt.Sprintf("Violation %d close up: %s to %s ms", i+1, millis(near.from), millis(near.to))
		p.pictures = append(p.pictures, newPagePicture(title, newPicture(r, near, fmt.Sprintf("near%d", i+1), "")))
	}
	p.pictures = append(p.pictures, newPagePicture("The whole run", newPicture(r, whole, "run", "")))

	var c canvas
	p.draw(&c)
	_, err := w.Write(c.Bytes())
	return err
}

func newPagePicture(title string, p *picture) pagePicture {
	p.draw()
	side := &picture{view: p.view, run: p.run, keys: p.keys, clients: p.clients, nodes: p.nodes, top: p.top, bottom: p.bottom}
	side.side()
	return pagePicture{title: title, svg: p.String(), names: side.String()}
}

// side draws only the left edge of a picture.
func (p *picture) side() {
	h := p.bottom + axisH + 8
	p.open("svg", attrs{
		"xmlns", "http://www.w3.org/2000/svg", "width", gutter, "height", h, "aria-hidden", "true",
		"font-family", fonts, "font-size", 11.0, "fill", ink,
	})
	p.rect(box{0, p.top, gutter, p.bottom - p.top}, "", attrs{"fill", paper})
	p.floor()
	p.names()
	p.close("svg")
}

// closeUp returns a view of a violation's locks, from their requests to their ends, as far as
// these are near.
func closeUp(v history.Violation, whole view) view {
	const near = 600 * time.Millisecond
	from, to := between(v)
	first, last := from, min(to, from+near)
	for _, l := range v.Locks {
		first, last = min(first, l.Asked), max(last, min(l.End(), last+near))
	}
	first, last = max(first, from-near), min(last, from+2*near)
	pad := max((last-first)/8, 5*time.Millisecond)
	return newView(max(whole.from, first-pad), min(whole.to, last+pad))
}
