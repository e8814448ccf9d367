package timeline

// header writes the title and the verdict of the run.
func (p *picture) header() {
	x := 10.0
	if s := fit(clean(p.title), 15*boldness, leastPlot-120); s != "" {
		p.text(x, titleY, s, attrs{"font-size", 15.0, "font-weight", "bold"})
		x += width(s, 15*boldness) + 20
	}
	colour := "#00664b"
	if len(p.run.Violations) > 0 {
		colour = alarm
	}
	p.text(x, titleY, verdict(p.run), attrs{"class", "verdict", "font-size", 15.0, "font-weight", "bold", "fill", colour})
}

// legend explains the signs in one line that fits into the narrowest picture.
func (p *picture) legend() {
	const size = 10.5
	x, y := 10.0, p.legendY
	c := paints[0]
	say := func(w float64, s string) {
		p.text(x+w+5, y+4, s, attrs{"font-size", size, "fill", faint})
		x += w + 5 + width(s, size) + 9
	}
	p.open("g", attrs{"class", "legend"})
	p.rect(box{x, y - 2, 22, 4}, "", attrs{"fill", c.fill, "fill-opacity", 0.8, "stroke", ink, "stroke-opacity", 0.5, "stroke-width", 0.4})
	say(22, "waits")
	p.cross(x+4, y, 3, "", attrs{"stroke", ink, "stroke-opacity", 0.75, "stroke-width", 1.5})
	say(8, "denied")
	p.rect(box{x, y - 6, 22, 12}, "", attrs{"fill", c.fill, "stroke", ink, "stroke-opacity", 0.55, "stroke-width", 0.6})
	say(22, "holds the lock")
	p.rect(box{x, y - 6, 22, 12}, "", attrs{"fill", c.fill, "fill-opacity", 0.3, "stroke", c.fill, "stroke-width", 0.8})
	say(22, "releasing, or over")
	p.shape("path", "", attrs{"d", "M" + px(x) + " " + px(y) + "l4 -5l4 5l-4 5Z", "fill", paper, "stroke", ink, "stroke-width", 1.3})
	say(8, "context done")
	p.rect(box{x, y - 6, 22, 12}, "", attrs{"fill", "url(#" + p.prefix + "-still)", "stroke", stillness, "stroke-width", 0.8})
	say(22, "paused")
	p.rect(box{x, y - 5, 22, 10}, "", attrs{"fill", c.fill, "fill-opacity", 0.7, "stroke", ink, "stroke-opacity", 0.35, "stroke-width", 0.5})
	p.text(x+11, y+3.2, "c1", attrs{"font-size", 8.5, "text-anchor", "middle"})
	say(22, "key stored for client 1")
	p.shape("circle", "", attrs{"cx", x + 4, "cy", y, "r", 2.6, "fill", c.fill, "stroke", ink, "stroke-width", 0.5})
	say(7, "grants")
	p.shape("circle", "", attrs{"cx", x + 4, "cy", y, "r", 2.6, "fill", paper, "stroke", faint, "stroke-width", 0.9})
	say(7, "refuses")
	p.cross(x+4, y, 2.6, "", attrs{"stroke", ink, "stroke-width", 1.3})
	say(7, "fails")
	p.rect(box{x, y - 6, 22, 12}, "", attrs{"fill", trouble, "fill-opacity", 0.2})
	p.line(x, y-6, x, y+6, attrs{"stroke", trouble})
	p.line(x+22, y-6, x+22, y+6, attrs{"stroke", trouble})
	say(22, "fault")
	if len(p.run.Violations) > 0 {
		p.rect(box{x, y - 6, 22, 12}, "", attrs{"fill", alarm, "fill-opacity", 0.22, "stroke", alarm, "stroke-width", 1.6})
		say(22, "violation")
	}
	p.close("g")
}
