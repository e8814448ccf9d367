package labpage

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The page paints before its simulation is there, and is ready later.
func TestPageIsThereAtOnce(t *testing.T) {
	p := openLab(t, "")
	p.wait(`performance.getEntriesByName("first-contentful-paint").length`)
	paint := eval[float64](p, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)
	t.Logf("first contentful paint after %.0f ms", paint)
	assert.Less(t, paint, 10_000.0)
	p.screenshot("newcomer")
}
