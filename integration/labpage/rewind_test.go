package labpage

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Going back shows the same history again. Another action there cuts its future off, and what comes is
// the history of the new address.
func TestRewindIsReplay(t *testing.T) {
	p := openLab(t, busy+"&until=6000")
	p.wait(`document.body.dataset.state === "paused" && window.lab.time() >= 6000`)
	before := eval[string](p, `window.lab.fingerprint()`)
	p.at(2000)
	early := eval[string](p, `window.lab.fingerprint()`)
	assert.NotEqual(t, before, early)
	p.at(6000)
	assert.Equal(t, before, eval[string](p, `window.lab.fingerprint()`))

	p.at(2000)
	eval[bool](p, `Promise.resolve(window.lab.act("hang-m5")).then(() => true)`)
	p.wait(`window.lab.fragment().includes("-hang-m5")`)
	address := eval[string](p, `window.lab.fragment()`)
	assert.NotContains(t, address, "pause-c2", "an action of the old future")
	assert.Contains(t, address, "1400-cutanswer-c1-m2")
	p.at(5000)
	after := eval[string](p, `window.lab.fingerprint()`)
	link := fmt.Sprintf("%s&until=5000", strings.Split(eval[string](p, `window.lab.fragment()`), "&until=")[0])
	require.Contains(t, link, "-hang-m5")
	assert.Equal(t, fingerprint(t, "--scenario", link), after)
	p.at(1998)
	p.at(2000)
	p.at(5000)
	assert.Equal(t, after, eval[string](p, `window.lab.fingerprint()`))
}
