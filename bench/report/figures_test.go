package report

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/bench/result"
)

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		figures []float64
		of      int
		want    string
	}{
		{nil, 0, "not measured"},
		{nil, 2, "–"},
		{[]float64{3}, 1, "3.00×"},
		{[]float64{2, 2}, 2, "2.00×"},
		{[]float64{9, 1, 2}, 3, "2.00× (1.00–9.00)"},
		{[]float64{4, 1, 3, 2}, 4, "2.50× (1.00–4.00)"},
		{[]float64{1, 3}, 5, "2.00× (1.00–3.00, 2 of 5 rounds)"},
		{[]float64{math.NaN(), 1, math.Inf(1)}, 3, "1.00× (1.00–1.00, 1 of 3 rounds)"},
	} {
		s := spreadOf(c.figures)
		s.of = c.of
		assert.Equal(t, c.want, times(s), "%v", c.figures)
	}
}

func TestFigure(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.00123: "0.0012", 0.0999: "0.100", 0.25: "0.25", 1: "1.00", 9.999: "10.0",
		12.34: "12.3", 99.96: "100", 999.6: "1,000", 1234567: "1,234,567", -1234: "-1,234",
	} {
		assert.Equal(t, want, figure(v))
	}
}

func TestDurations(t *testing.T) {
	for _, c := range []struct {
		figures []float64
		want    string
	}{
		{[]float64{950, 84_200, 91_000}, "84.2 µs (0.95–91.0)"},
		{[]float64{999_600, 999_700}, "1.00 ms"},
		{[]float64{1e6, 2.5e6}, "1.75 ms (1.00–2.50)"},
		{[]float64{3e9}, "3.00 s"},
	} {
		assert.Equal(t, c.want, durations(spreadOf(c.figures)))
	}
	assert.Equal(t, "10 ms", nanoseconds(float64(10*time.Millisecond)))
	assert.Equal(t, "1 ms", nanoseconds(math.Pow(10, 5.999999999999)))
	assert.Equal(t, "200 ns", nanoseconds(200))
}

func TestConditions(t *testing.T) {
	assert.Equal(t, "healthy", condition(result.Cell{}))
	assert.Equal(t, "two hung", condition(result.Cell{Hung: 2}))
	assert.Equal(t, "one refusing", condition(result.Cell{Refused: 1}))
	assert.Equal(t, "one hung, 12 refusing", condition(result.Cell{Hung: 1, Refused: 12}))
}

func TestMarkdownIsEscaped(t *testing.T) {
	g := grid{head: []string{"a"}, rows: [][]string{{"x|y"}}}
	assert.Equal(t, "| a |\n|---|\n| x\\|y |\n", g.markdown())
}
