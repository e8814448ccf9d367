package report

import (
	"bytes"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// plots are the pictures of the page.
var plots = []picture{
	{"benchmarks-latency.svg", latencyPlot},
	{"benchmarks-callers.svg", callersPlot},
	{"benchmarks-nodes.svg", nodesPlot},
	{"benchmarks-faults.svg", faultsPlot},
	{"benchmarks-contended.svg", contendedPlot},
	{"benchmarks-commands.svg", commandsPlot},
}

// picture is one of the page's plots. Its panels are side by side, under one legend of their
// subjects.
type picture struct {
	file string
	make func(measured) (panels []*plot.Plot, subjects []identity, err error)
}

// 600 × 345 points are 800 × 460 pixels.
const (
	pictureWidth  = 600 * vg.Inch / 72
	pictureHeight = 345 * vg.Inch / 72
	margin        = vg.Length(10)
)

var (
	ink  = color.NRGBA{0x22, 0x22, 0x22, 0xFF}
	sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

	gridLine = draw.LineStyle{Color: color.NRGBA{0xDD, 0xDD, 0xDD, 0xFF}, Width: 0.5}
)

// render returns the picture as SVG, on white, so that it is legible on a dark page too.
func (p picture) render(m measured) ([]byte, error) {
	panels, subjects, err := p.make(m)
	if err != nil {
		return nil, err
	}
	svg := vgsvg.New(pictureWidth, pictureHeight)
	c := draw.New(svg)
	c.FillPolygon(color.White, []vg.Point{
		c.Min, {X: c.Min.X, Y: c.Max.Y}, c.Max, {X: c.Max.X, Y: c.Min.Y},
	})
	c = draw.Crop(c, margin, -margin, margin, -margin)
	c = legend(c, subjects)
	tiles := draw.Tiles{Rows: 1, Cols: len(panels), PadX: 14}
	for i, part := range plot.Align([][]*plot.Plot{panels}, tiles, c)[0] {
		panels[i].Draw(part)
	}
	var b bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return nil, err
	}
	// Without the font, the browser must not fall back to one with serifs.
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}

// panel returns an empty plot with labelled axes and a grid at their ticks.
func panel(title, x, y string, xs, ys axis) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.Padding = 4
	p.Title.TextStyle.Font = font.From(sans, 11)
	p.Title.TextStyle.Color = ink
	for _, a := range []struct {
		of    *plot.Axis
		label string
		axis  axis
	}{{&p.X, x, xs}, {&p.Y, y, ys}} {
		a.of.Label.Text = a.label
		a.of.Label.TextStyle.Font = font.From(sans, 11)
		a.of.Label.TextStyle.Color = ink
		a.of.Label.Padding = 3
		a.of.Tick.Label.Font = font.From(sans, 10)
		a.of.Tick.Label.Color = ink
		a.of.Tick.Color, a.of.Color = ink, ink
		a.of.Tick.Length = 4
		a.of.Padding = 0
		a.of.Min, a.of.Max = a.axis.min, a.axis.max
		a.of.Tick.Marker = plot.ConstantTicks(a.axis.ticks)
	}
	grid := &plotter.Grid{Horizontal: gridLine, Vertical: gridLine}
	if xs.groups {
		grid.Vertical.Color = nil
		p.X.Tick.Width = 0
	}
	p.Add(grid)
	return p
}

// nothing returns a plot without a figure. tried says whether it was measured.
func nothing(title, x, y string, tried bool) *plot.Plot {
	p := panel(title, x, y, axis{max: 1}, axis{max: 1})
	if tried {
		p.Add(note{"nothing succeeded"})
	} else {
		p.Add(note{notMeasured})
	}
	return p
}

// note is a text in the middle of a plot.
type note struct{ text string }

func (n note) Plot(c draw.Canvas, p *plot.Plot) {
	style := p.X.Label.TextStyle
	style.XAlign, style.YAlign = draw.XCenter, draw.YCenter
	c.FillText(style, c.Center(), n.text)
}

// legend draws the subjects' names in rows at the top of c and returns the rest of c.
func legend(c draw.Canvas, subjects []identity) draw.Canvas {
	const thumb, gap, between, row = 24, 5, 16, 15
	style := plot.New().Title.TextStyle
	style.Font, style.Color = font.From(sans, 10), ink
	style.XAlign, style.YAlign = draw.XLeft, draw.YCenter
	x, y := c.Min.X, c.Max.Y-row/2
	for _, id := range subjects {
		width := thumb + gap + style.Width(string(id.subject))
		if x > c.Min.X && x+width > c.Max.X {
			x, y = c.Min.X, y-row
		}
		c.StrokeLine2(id.line(), x, y, x+thumb, y)
		c.DrawGlyph(id.mark(), vg.Point{X: x + thumb/2, Y: y})
		c.FillText(style, vg.Point{X: x + thumb + gap, Y: y + 1}, string(id.subject))
		x += width + between
	}
	return draw.Crop(c, 0, 0, 0, y-row/2-6-c.Max.Y)
}
