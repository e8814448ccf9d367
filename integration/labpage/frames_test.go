package labpage

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The picture moves smoothly at real time, with many clients. How smoothly depends on the machine, so the
// test only fails if it stutters however often it is measured.
func TestFramesASecond(t *testing.T) {
	p := openLab(t, "nodes=5&clients=7&fencing=1&latency=100ms&do=0-work-c1,0-work-c2,0-work-c3,0-work-c4,0-work-c5,0-work-c6,0-work-c7")
	p.play()
	p.wait(`window.lab.time() > 1000`)
	best := 0.0
	for range 3 {
		from := eval[float64](p, `window.lab.time()`)
		frames := eval[struct{ FPS, Worst float64 }](p, `window.lab.frames(5).then(({ fps, worst }) => ({ FPS: fps, Worst: worst }))`)
		speed := (eval[float64](p, `window.lab.time()`) - from) / 5000
		t.Logf("frames a second: %.1f; the longest frame took %.0f ms; %.2f times real time", frames.FPS, frames.Worst, speed)
		best = max(best, frames.FPS)
		if best > 55 {
			break
		}
	}
	assert.Greater(t, best, 10.0)
	assert.Empty(t, eval[string](p, `document.body.dataset.violation ?? ""`))
}
