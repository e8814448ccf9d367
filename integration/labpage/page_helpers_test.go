package labpage

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patience bounds each wait. Nothing that works takes as long, also on a loaded machine.
const patience = 3 * time.Minute

// look is how a page is shown.
type look struct {
	name    string
	width   int64
	height  int64
	dark    bool
	phone   bool // scrollbars take no room
	reduced bool // motion
	large   bool // text, at 200 %
}

// wide is the look of tests that are not about looks.
var wide = look{name: "wide", width: 1440, height: 900}

// page is a page in a fresh profile.
type page struct {
	t   *testing.T
	ctx context.Context
}

// open opens the page below an address, with a fragment that may be empty. The test fails if anything
// is written to the console as an error.
func open(t *testing.T, address, fragment string, as look) *page {
	t.Helper()
	ctx, closePage := chromedp.NewContext(inBrowser(t), chromedp.WithNewBrowserContext())
	p := &page{t: t, ctx: ctx}
	var console sync.WaitGroup
	messages := chromedp.Console(ctx)
	console.Go(func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			if message.Type == chromedp.ConsoleError || message.Type == chromedp.ConsoleException {
				t.Errorf("console: %s: %s (%s:%d)", message.Type, message.Text, message.URL, message.Line)
			}
		}
	})
	t.Cleanup(func() {
		if t.Failed() {
			p.screenshot("failed")
		}
		closePage()
		console.Wait()
	})
	p.show(as)
	url := address
	if fragment != "" {
		url += "#" + fragment
	}
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(url)))
	return p
}

// openLab opens the page of the shared server, and waits until its simulation runs.
func openLab(t *testing.T, fragment string) *page {
	t.Helper()
	inBrowser(t)
	s, err := serve()
	require.NoError(t, err)
	p := open(t, s.address, fragment, wide)
	p.ready()
	return p
}

// show changes how the page is shown.
func (p *page) show(as look) {
	p.t.Helper()
	feature := func(name, value string) *emulation.MediaFeature {
		return &emulation.MediaFeature{Name: name, Value: value}
	}
	scheme, motion := "light", "no-preference"
	if as.dark {
		scheme = "dark"
	}
	if as.reduced {
		motion = "reduce"
	}
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: as.width, Height: as.height, DeviceScaleFactor: 1, Mobile: as.phone})
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		feature("prefers-color-scheme", scheme), feature("prefers-reduced-motion", motion),
	}})
}

// call sends a command of the browser's protocol.
func call[P, R any](p *page, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	result, err := chromedp.Call(p.ctx, command, params)
	require.NoError(p.t, err, command.Method)
	return result
}

// eval returns the value of an expression, or what its promise resolves to.
func eval[T any](p *page, expression string, args ...any) T {
	p.t.Helper()
	expression = script(expression, args...)
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(p.t, err, expression)
	return value
}

// script writes args into an expression in the places of its %s, as values of JavaScript.
func script(expression string, args ...any) string {
	if len(args) == 0 {
		return expression
	}
	values := make([]any, len(args))
	for i, arg := range args {
		value, err := json.Marshal(arg)
		if err != nil {
			panic(err)
		}
		values[i] = string(value)
	}
	return fmt.Sprintf(expression, values...)
}

// wait waits until an expression is true.
func (p *page) wait(expression string, args ...any) {
	p.t.Helper()
	p.waitAtMost(patience, expression, args...)
}

func (p *page) waitAtMost(limit time.Duration, expression string, args ...any) {
	p.t.Helper()
	expression = script(expression, args...)
	_, err := chromedp.Run(p.ctx, chromedp.Poll[bool](`!!(`+expression+`)`, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(limit)))
	if err != nil {
		state, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string](`JSON.stringify({...document.body.dataset, time: window.lab?.time(), fragment: window.lab?.fragment()}) + "\n" + document.querySelector("main").innerText.replaceAll(/\s+/g, " ").slice(0, 1000)`))
		require.NoError(p.t, err, "never: %s\n%s", expression, state)
	}
}

// ready waits until the simulation runs.
func (p *page) ready() {
	p.t.Helper()
	p.wait(`window.lab && document.body.dataset.state && document.body.dataset.state !== "loading"`)
	eval[bool](p, `window.lab.ready.then(() => true)`)
}

// never fails the test if an expression gives anything in a list of what must not be.
func (p *page) never(what, expression string, args ...any) {
	p.t.Helper()
	assert.Empty(p.t, eval[[]string](p, expression, args...), what)
}

// document returns the root of the page's nodes.
func (p *page) document() cdp.BackendNodeID {
	p.t.Helper()
	return call(p, dom.GetDocument, dom.GetDocumentParams{}).Root.BackendNodeID
}

// screenshot writes a picture of the page into the folder LABPAGE_SCREENSHOTS, if that is set.
func (p *page) screenshot(name string) {
	if os.Getenv("LABPAGE_SCREENSHOTS") == "" {
		return
	}
	content, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	p.save(name, content, err)
}

func (p *page) save(name string, picture []byte, err error) {
	if err == nil {
		file := strings.NewReplacer("/", "-", " ", "-").Replace(p.t.Name()+"-"+name) + ".png"
		err = os.WriteFile(filepath.Join(os.Getenv("LABPAGE_SCREENSHOTS"), file), picture, 0o644)
	}
	if err != nil {
		p.t.Logf("no screenshot: %v", err)
	}
}
