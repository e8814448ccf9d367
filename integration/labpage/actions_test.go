package labpage

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
)

// Each action has a button, and what the buttons do is what the command does with the page's address.
func TestEachActionByItsButton(t *testing.T) {
	p := openLab(t, "latency=10ms&ttl=10s&fencing=1&seed=3")
	p.play()
	for _, word := range []string{
		// The locks of one client, and another that waits meanwhile
		"acquire-c1", "acquire-c2", "giveup-c2", "extend-c1", "keep-c1", "write-c1", "release-c1",
		"try-c2", "release-c2", "work-c3", "rest-c3",
		"kill-m1", "restart-m1", "hang-m1", "resume-m1", "forget-m1", "ahead-m2-3000", "back-m2-3000",
		"cut-c1-m2", "heal-c1-m2", "cutask-c2-m3", "cutanswer-c2-m4", "heal-c2",
		"lose-m5", "slow-m5-300", "heal-m5", "cut-c3", "heal-c3",
		"suspend-c2", "continue-c2", "start-c3",
	} {
		if word == "start-c3" {
			p.act("die-c3")
		}
		p.act(word)
	}
	// By keyboard alone
	p.actByKey("pause-c1", kb.Enter)
	p.actByKey("continue-c1", " ")
	p.actByKey("kill-m4", kb.Enter)
	p.actByKey("suspend-c1", kb.Enter)

	p.pause()
	p.screenshot("after each action")
	link := eval[string](p, `window.lab.fragment()`)
	assert.Contains(t, link, "until=")
	assert.Equal(t, fingerprint(t, "--scenario", link), eval[string](p, `window.lab.fingerprint()`), link)
}
