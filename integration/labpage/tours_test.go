package labpage

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// narrow is the look of a phone.
var narrow = look{name: "narrow", width: 390, height: 844, phone: true}

// A reader takes each tour to its end, using the controls that it points at and nothing else.
func TestEachTourToItsEnd(t *testing.T) {
	looks := []look{wide}
	if os.Getenv("LABPAGE_LOOKS") == "all" {
		looks = append(looks, narrow)
	}
	p := openLab(t, "")
	names := eval[[]string](p, `[...document.querySelectorAll("[data-tour]:not(body)")].map((b) => b.dataset.tour)`)
	require.Len(t, names, 7)
	for _, as := range looks {
		for _, name := range names {
			t.Run(name+" "+as.name, func(t *testing.T) {
				t.Parallel() // most of a tour's time goes by on the page
				p := openLab(t, "")
				p.show(as)
				p.takeTour(name)
			})
		}
	}
}

// takeTour does what each step of a tour asks for, until the tour ends.
func (p *page) takeTour(name string) {
	p.t.Helper()
	p.clickOn(p.reveal(`button[data-tour="` + name + `"]`))
	p.wait(`document.body.dataset.tour === %s`, name)
	last := eval[string](p, `document.querySelector(".tour").innerText.match(/step 1 of (\d+)/i)[1]`)
	var steps []string
	for {
		// A step asks for a control, or has been read, or ends by itself.
		p.wait(`!document.body.dataset.tour || document.querySelector("button[data-hint], input[data-hint], [data-do=next].primary")`)
		if eval[bool](p, `!document.body.dataset.tour`) {
			break
		}
		step := eval[string](p, `document.body.dataset.step`)
		if !slices.Contains(steps, step) {
			steps = append(steps, step)
			p.screenshot("step " + step)
		}
		if used := eval[string](p, `document.querySelector("button[data-hint], input[data-hint]")?.outerHTML ?? ""`); used != "" {
			p.clickOn(p.reveal("button[data-hint], input[data-hint]"))
			p.wait(`(document.querySelector("button[data-hint], input[data-hint]")?.outerHTML ?? "") !== %s || document.body.dataset.step !== %s`, used, step)
			continue
		}
		p.clickOn(p.reveal("[data-do=next]"))
		p.wait(`document.body.dataset.step !== %s || !document.body.dataset.tour`, step)
	}
	assert.Equal(p.t, last, steps[len(steps)-1], "the last step that asked for something")
	p.t.Logf("%s steps, %.1f s of virtual time at the end", last, eval[float64](p, `window.lab.time()`)/1000)
}
