package timeline

import (
	"bytes"
	"fmt"
	"html"
	"strconv"
	"strings"
)

// canvas collects elements of SVG and HTML. All texts and attributes pass through it, so only
// canvas has to escape them.
type canvas struct{ bytes.Buffer }

// attrs are an element's attributes: name, value, name, value. A float64 is a length in
// pixels.
type attrs []any

func (c *canvas) open(name string, a attrs) {
	c.WriteString("<" + name)
	for i := 0; i+1 < len(a); i += 2 {
		c.WriteString(" " + a[i].(string) + `="`)
		c.escape(px(a[i+1]))
		c.WriteByte('"')
	}
	c.WriteByte('>')
}

func (c *canvas) close(name string) { c.WriteString("</" + name + ">\n") }

// element writes an element that contains only text.
func (c *canvas) element(name, text string, a attrs) {
	c.open(name, a)
	c.escape(text)
	c.close(name)
}

// shape writes an element with the tooltip tip.
func (c *canvas) shape(name, tip string, a attrs) {
	c.open(name, a)
	if tip != "" {
		c.element("title", tip, nil)
	}
	c.close(name)
}

func (c *canvas) rect(b box, tip string, a attrs) {
	c.shape("rect", tip, append(attrs{"x", b.x, "y", b.y, "width", b.w, "height", b.h}, a...))
}

func (c *canvas) line(x1, y1, x2, y2 float64, a attrs) {
	c.shape("line", "", append(attrs{"x1", x1, "y1", y1, "x2", x2, "y2", y2}, a...))
}

func (c *canvas) text(x, y float64, s string, a attrs) {
	c.element("text", s, append(attrs{"x", x, "y", y}, a...))
}

// cross draws an x of radius r around a point.
func (c *canvas) cross(x, y, r float64, tip string, a attrs) {
	d := fmt.Sprintf("M%s %sL%s %sM%s %sL%s %s",
		px(x-r), px(y-r), px(x+r), px(y+r), px(x-r), px(y+r), px(x+r), px(y-r))
	c.shape("path", tip, append(attrs{"d", d, "fill", "none"}, a...))
}

// escape also replaces characters that XML cannot contain, such as a NUL in a key.
func (c *canvas) escape(s string) { c.WriteString(html.EscapeString(strings.Map(inXML, s))) }

func inXML(r rune) rune {
	if r < ' ' && r != '\t' && r != '\n' || r == '\uFFFE' || r == '\uFFFF' {
		return '\uFFFD'
	}
	return r
}

func px(v any) string {
	f, ok := v.(float64)
	if !ok {
		return fmt.Sprint(v)
	}
	s := strconv.FormatFloat(f, 'f', 2, 64)
	for s[len(s)-1] == '0' {
		s = s[:len(s)-1]
	}
	if s[len(s)-1] == '.' {
		s = s[:len(s)-1]
	}
	if s == "-0" {
		return "0"
	}
	return s
}

// box is a rectangle in pixels.
type box struct{ x, y, w, h float64 }

// width estimates the width of a text in a sans-serif font. It is a little too large for most
// texts, so that a text that should fit does.
func width(s string, size float64) float64 {
	w := 0.0
	for _, r := range s {
		switch {
		case r > 0x2E80:
			w += 1
		case r == 'i' || r == 'l' || r == '.' || r == ',' || r == ':' || r == ' ' || r == '|' || r == '\'':
			w += 0.36
		case r == 'm' || r == 'w' || r == 'M' || r == 'W':
			w += 0.95
		default:
			w += 0.63
		}
	}
	return w * size
}

// boldness is how much wider bold letters are.
const boldness = 1.06

// fit shortens s until it is at most w wide.
func fit(s string, size, w float64) string {
	for n := len([]rune(s)); n > 0 && width(s, size) > w; n-- {
		s = short(s, n-1)
	}
	return s
}
