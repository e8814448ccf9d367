package labpage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A newcomer has nothing but the address. By clicking alone they see a lock in use, make three masters
// forget, and find two clients that hold it. With the restart guard the same actions do no harm.
func TestNewcomerFindsTwoHolders(t *testing.T) {
	p := openLab(t, "")
	began := time.Now()
	p.wait(`document.body.dataset.state === "playing"`)
	tries := 0
	for violated := false; !violated; tries++ {
		require.Less(t, tries, 20, "no violation is found by clicking")
		p.wait(`document.body.dataset.violation || [...document.querySelectorAll(".client .state")].some((s) => s.textContent.startsWith("holds"))`)
		for _, master := range []string{"1", "2", "3"} {
			if violated = eval[bool](p, `!!document.body.dataset.violation`); !violated {
				p.click("button", "Forget: restart master "+master+" without memory")
			}
		}
		if !violated {
			after := eval[float64](p, `window.lab.time()`) + 3000
			p.wait(`document.body.dataset.violation || window.lab.time() > %s`, after)
			violated = eval[bool](p, `!!document.body.dataset.violation`)
		}
	}
	t.Logf("two holders after %.1f s, at try %d, by masters that forget", time.Since(began).Seconds(), tries)
	assert.Equal(t, "exclusion", eval[string](p, `document.body.dataset.violation`))
	p.wait(`document.body.dataset.state === "paused"`)
	assert.Len(t, eval[[]string](p, `[...document.querySelectorAll(".client.framed")].map((c) => c.id)`), 2, "both holders are framed")
	p.screenshot("two holders")

	p.click("button", "Try again with RestartGuard")
	p.wait(`window.lab.fragment().includes("guard=1")`)
	p.wait(`!document.body.dataset.violation`)
	until := eval[float64](p, `Math.max(...window.lab.fragment().match(/\d+(?=-forget)/g).map(Number)) + 3000`)
	p.play()
	p.wait(`document.body.dataset.violation || window.lab.time() > %s`, until)
	p.never("violations with the guard", `window.lab.violations().map((v) => v.text)`)
}
