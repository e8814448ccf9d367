package labpage

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// busy is a link to a history with actions of all kinds: on masters, links, clients and locks.
const busy = "seed=7&fencing=1&fair=1&do=0-work-c1,0-work-c2,100-acquire-c3,900-kill-m1,1400-cutanswer-c1-m2,2100-pause-c2,2600-slow-m3-150,3400-forget-m4,4200-continue-c2,4800-heal-c1-m2,5000-suspend-c1,5400-restart-m1,6000-ahead-m5-2000,6400-continue-c1"

// A link shows the same history everywhere: in a fresh profile, once more in another, and outside of
// the browser.
func TestLinkShowsTheSameHistory(t *testing.T) {
	link := busy + "&until=8000"
	want := fingerprint(t, "--scenario", link)
	for range 2 {
		p := openLab(t, link)
		p.wait(`document.body.dataset.state === "paused" && window.lab.time() >= 8000`)
		assert.InDelta(t, 8000, eval[float64](p, `window.lab.time()`), 2)
		assert.Equal(t, want, eval[string](p, `window.lab.fingerprint()`))
		p.screenshot("busy")
	}
	assert.NotEqual(t, want, fingerprint(t, "--scenario", busy+"&until=7000"))
}

// settings are some of a link's settings that change the history.
func TestLinkHasTheSettings(t *testing.T) {
	prints := map[string]bool{}
	for _, settings := range []string{"", "&nodes=3&clients=7", "&guard=1&latency=150ms", "&slots=2&seed=9", "&draw=1&ttl=2s&timeout=100ms"} {
		link := "do=0-work-c1,0-work-c2,500-forget-m1" + settings + "&until=4000"
		p := openLab(t, link)
		p.wait(`document.body.dataset.state !== "playing" && (window.lab.time() >= 4000 || document.body.dataset.violation)`)
		if at := eval[float64](p, `window.lab.time()`); at < 4000 { // a violation has stopped it
			link = fmt.Sprintf("do=0-work-c1,0-work-c2,500-forget-m1%s&until=%.0f", settings, at)
		}
		print := eval[string](p, `window.lab.fingerprint()`)
		assert.Equal(t, fingerprint(t, "--scenario", link), print, link)
		assert.False(t, prints[print], "other settings gave this history: %s", link)
		prints[print] = true
	}
}

// fromEnvironment reads numbers from a variable, if it is set.
func fromEnvironment(t *testing.T, name, form string, numbers ...*int) {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return
	}
	into := make([]any, len(numbers))
	for i := range numbers {
		into[i] = numbers[i]
	}
	_, err := fmt.Sscanf(text, form, into...)
	require.NoError(t, err, "%s is %q", name, text)
}

// A seed of the fault lab makes the same history in the browser, each time, and outside of it. Without
// LABPAGE_SEEDS there are a few small histories.
func TestSeedsMakeTheSameHistories(t *testing.T) {
	p := openLab(t, "do=")
	query, flags := "&nodes=3&clients=3&for=300ms&faults=crash,delay", []string{"--nodes", "3", "--clients", "3", "--for", "300ms", "--faults", "crash,delay"}
	if os.Getenv("LABPAGE_SEEDS") != "" {
		query, flags = "", nil
	}
	from, to, runs := 3, 5, 2
	fromEnvironment(t, "LABPAGE_SEEDS", "%d-%d", &from, &to)
	fromEnvironment(t, "LABPAGE_RUNS", "%d", &runs)
	same := 0
	for seed := from; seed <= to; seed++ {
		text := strconv.Itoa(seed)
		want := fingerprint(t, append(flags, "--seed", text)...)
		for range runs {
			over := eval[struct{ Fingerprint string }](p, `window.lab.runSim(%s)`, "sim="+text+query)
			if assert.Equal(t, want, over.Fingerprint, "seed %d", seed) {
				same++
			}
		}
	}
	t.Logf("seeds %d-%d, %d runs each in the browser: %d of %d fingerprints are those of exact runs outside of it", from, to, runs, same, (to-from+1)*runs)
}
