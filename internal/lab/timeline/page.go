package timeline

import _ "embed" // for the style

//go:embed page.css
var pageStyle string

// page is the content of the HTML page. It is drawn in the same way as the pictures, not with
// html/template: templates look methods up by name, so the linker has to keep every exported
// method. That made the command 13 MB larger, and slower to start by 0.4 ms.
type page struct {
	title, command, verdict, text string
	violations                    []pageViolation
	pictures                      []pagePicture
}

type pageViolation struct{ at, text, anchor string }

// pagePicture is a picture, and the names of its lanes once more, which stay in sight while
// the picture scrolls. svg and names are markup.
type pagePicture struct{ title, svg, names string }

func (p page) draw(c *canvas) {
	c.WriteString("<!doctype html>\n")
	c.open("html", attrs{"lang", "en"})
	p.head(c)
	c.open("body", nil)
	c.element("h1", p.title, nil)
	p.outcome(c)
	if p.command != "" {
		c.element("p", "The command that replays it:", nil)
		c.element("pre", p.command, attrs{"class", "replay"})
	}
	for _, picture := range p.pictures {
		c.element("h2", picture.title, nil)
		c.open("div", attrs{"class", "scroll"})
		c.open("div", attrs{"class", "names"})
		c.WriteString(picture.names)
		c.close("div")
		c.WriteString(picture.svg)
		c.close("div")
	}
	c.open("details", nil)
	c.open("summary", nil)
	c.element("h2", "As text", attrs{"style", "display:inline"})
	c.close("summary")
	c.element("pre", p.text, nil)
	c.close("details")
	c.close("body")
	c.close("html")
}

func (p page) head(c *canvas) {
	c.open("head", nil)
	c.open("meta", attrs{"charset", "utf-8"})
	c.open("meta", attrs{"name", "viewport", "content", "width=device-width, initial-scale=1"})
	c.open("meta", attrs{"name", "color-scheme", "content", "light dark"})
	c.element("title", p.title+": "+p.verdict, nil)
	c.open("style", nil)
	c.WriteString("\n" + pageStyle)
	c.close("style")
	c.close("head")
}

// outcome draws the verdict, and links to the violations.
func (p page) outcome(c *canvas) {
	if len(p.violations) == 0 {
		c.element("p", p.verdict, attrs{"class", "verdict good"})
		return
	}
	c.element("p", p.verdict, attrs{"class", "verdict bad"})
	c.open("ol", attrs{"class", "violations"})
	for _, v := range p.violations {
		c.open("li", nil)
		c.element("a", v.at+" ms", attrs{"href", "#" + v.anchor})
		c.escape(v.text)
		c.close("li")
	}
	c.close("ol")
}
