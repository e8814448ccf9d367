package report

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/quorumlock/redlock/bench/result"
)

// identity is how a subject looks on the page and in every plot.
type identity struct {
	subject result.Subject
	what    string // for the page's list of subjects
	library bool   // takes locks; the others are bounds, each for some cells only
	variant bool   // this library with options that are off by default; in its own scenario only

	colour color.NRGBA
	width  vg.Length
	dashes []vg.Length
	glyph  draw.GlyphDrawer
}

// identities are the subjects, in the order of tables and legends. The colours are those of
// Okabe and Ito, which colour-blind people can tell apart; shapes and dashes differ as well.
var identities = []identity{
	{
		subject: result.Quorumlock, library: true,
		what:   "this library as its README opens it: `Open` with the zero `Config`",
		colour: color.NRGBA{0x00, 0x72, 0xB2, 0xFF}, width: 3, glyph: draw.CircleGlyph{},
	},
	{
		subject: result.Fair, library: true, variant: true,
		what: "this library with `Fair`: waiters get a key in the order in which " +
			"they asked for it",
		colour: color.NRGBA{0x56, 0xB4, 0xE9, 0xFF}, width: 1.5, glyph: draw.PyramidGlyph{},
	},
	{
		subject: result.Redsync, library: true,
		what: "[redsync](https://github.com/go-redsync/redsync) with its defaults, which wait " +
			"for all masters; two connections a caller to each, so that none waits for one",
		colour: color.NRGBA{0xD5, 0x5E, 0x00, 0xFF}, width: 1.5, glyph: polygon{4, math.Pi / 4},
	},
	{
		subject: result.RedsyncFF, library: true,
		what: "the same `WithFailFast(true)`: it leaves at the majority, and a release that " +
			"overtakes its `SET` on the slowest leaves the key there for its ttl",
		colour: color.NRGBA{0xE6, 0x9F, 0x00, 0xFF}, width: 1.5, glyph: polygon{4, 0},
	},
	{
		subject: result.Redislock, library: true,
		what: "[bsm/redislock](https://github.com/bsm/redislock) on one master: a lock " +
			"without failover, gone when that master is; a connection a caller",
		colour: color.NRGBA{0x00, 0x9E, 0x73, 0xFF}, width: 1.5, glyph: polygon{3, 0},
	},
	{
		subject: result.Rueidis, library: true,
		what: "[rueidislock](https://github.com/redis/rueidis/tree/main/rueidislock) in " +
			"its own model: a majority of three keys of *one* client, here on one " +
			"master, and not of independent masters; `NoLoopTracking`, and a " +
			"`TryNextAfter` long enough that nobody gives up among many callers",
		colour: color.NRGBA{0xCC, 0x79, 0xA7, 0xFF}, width: 1.5, glyph: polygon{3, math.Pi},
	},
	{
		subject: result.Floor,
		what: "a bound on latency: requests encoded beforehand, on plain sockets to the " +
			"same masters, by one caller that leaves at the majority",
		colour: color.NRGBA{0x33, 0x33, 0x33, 0xFF}, width: 1.2,
		dashes: []vg.Length{6, 3}, glyph: draw.RingGlyph{},
	},
	{
		subject: result.Ceiling,
		what: "a bound on throughput: deep raw pipelines to all masters, without any " +
			"lock logic; nobody waits for a single operation, so it has no latency",
		colour: color.NRGBA{0x80, 0x80, 0x80, 0xFF}, width: 1.2,
		dashes: []vg.Length{2, 2}, glyph: draw.SquareGlyph{},
	},
	{
		subject: result.Fenced, library: true, variant: true,
		what: "this library with `Fencing`: a token with each lock, for which an " +
			"acquisition is a script and each master keeps a fence beside the key",
	},
	{
		subject: result.Guarded, library: true, variant: true,
		what: "this library with a `RestartGuard` of 3 s, which is the ttl of its locks too; " +
			"the masters have been up for longer before it has its first turn",
	},
	{
		subject: result.Both, library: true, variant: true,
		what: "this library with both of these",
	},
}

// line returns the style of the subject's lines.
func (id identity) line() draw.LineStyle {
	return draw.LineStyle{Color: id.colour, Width: id.width, Dashes: id.dashes}
}

// bar returns the style of the subject's ranges.
func (id identity) bar() draw.LineStyle {
	return draw.LineStyle{Color: id.colour, Width: 1}
}

// mark returns the style of the subject's points.
func (id identity) mark() draw.GlyphStyle {
	return draw.GlyphStyle{Color: id.colour, Radius: 4, Shape: id.glyph}
}

// polygon is a filled glyph with some corners. turn, in radians, rotates it from the position
// in which one corner points up.
type polygon struct {
	corners int
	turn    float64
}

func (p polygon) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	var path []vg.Point
	for i := range p.corners {
		sin, cos := math.Sincos(math.Pi/2 + p.turn + 2*math.Pi*float64(i)/float64(p.corners))
		path = append(path, vg.Point{
			X: at.X + style.Radius*1.2*vg.Length(cos), Y: at.Y + style.Radius*1.2*vg.Length(sin),
		})
	}
	c.FillPolygon(style.Color, path)
}
