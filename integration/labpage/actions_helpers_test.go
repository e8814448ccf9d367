package labpage

import (
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// shown is a function of the page that finds an enabled element, preferably one that is shown. It returns
// the outermost closed menu around it, and how many closed menus there are.
const shown = `window.shown = (selector) => {
	const all = [...document.querySelectorAll(selector)].filter((e) => !e.disabled && !e.matches("details"));
	const element = all.find((e) => e.checkVisibility()) || all[0];
	let menu = null, closed = 0;
	for (let e = element?.parentElement; e; e = e.parentElement) {
		if (e.tagName === "DETAILS" && !e.open && !(element.tagName === "SUMMARY" && element.parentElement === e)) {
			menu = e.querySelector(":scope > summary");
			closed++;
		}
	}
	return { element, menu, closed };
}; true`

// reveal waits for an element and returns it. It closes other menus by the Escape key, and opens the menus
// around it, the outermost first.
func (p *page) reveal(selector string) cdp.BackendNodeID {
	p.t.Helper()
	eval[bool](p, shown)
	p.wait(`shown(%s).element`, selector)
	const other = `[...document.querySelectorAll("details.more[open]")].find((menu) => !menu.contains(shown(%s).element))`
	for eval[bool](p, "!!"+other, selector) {
		eval[bool](p, other+`.querySelector("summary").focus(), true`, selector)
		require.NoError(p.t, chromedp.Do(p.ctx, chromedp.KeyEvent(kb.Escape)))
	}
	for closed := eval[int](p, `shown(%s).closed`, selector); closed > 0; closed-- {
		p.clickOn(p.node(script(`shown(%s).menu`, selector)))
		p.wait(`shown(%s).closed < %s`, selector, closed)
	}
	return p.node(script(`shown(%s).element`, selector))
}

// button is the selector of the buttons for an action, such as kill-m1.
func button(word string) string { return `[data-act="` + word + `"]` }

// act does an action by the mouse, and waits until the address has it.
func (p *page) act(word string) {
	p.t.Helper()
	p.perform(word, p.clickOn)
}

// actByKey does an action by the keyboard.
func (p *page) actByKey(word, key string) {
	p.t.Helper()
	p.perform(word, func(node cdp.BackendNodeID) {
		call(p, dom.Focus, dom.FocusParams{BackendNodeID: node})
		require.NoError(p.t, chromedp.Do(p.ctx, chromedp.KeyEvent(key)))
	})
}

// perform waits until the page offers an action, and stops it, so that nothing moves under the mouse. Then
// it does the action, and has the page go on.
func (p *page) perform(word string, by func(cdp.BackendNodeID)) {
	p.t.Helper()
	eval[bool](p, shown)
	p.wait(`shown(%s).element`, button(word))
	p.pause()
	before := eval[int](p, `window.lab.fragment().split(%s).length`, "-"+word)
	by(p.reveal(button(word)))
	p.wait(`window.lab.fragment().split(%s).length > %s`, "-"+word, before)
	p.play()
}

func (p *page) pause() {
	p.t.Helper()
	eval[bool](p, `Promise.resolve(window.lab.pause()).then(() => true)`)
	p.wait(`document.body.dataset.state !== "playing"`)
}

func (p *page) play() {
	p.t.Helper()
	eval[bool](p, `Promise.resolve(window.lab.play()).then(() => true)`)
}

// at moves the playhead to a time, and plays if that has not been made yet.
func (p *page) at(ms int) {
	p.t.Helper()
	p.pause()
	if eval[float64](p, `Promise.resolve(window.lab.seek(%s)).then(() => window.lab.time())`, ms) < float64(ms)-1 {
		p.play()
		p.wait(`window.lab.time() >= %s`, ms)
		p.pause()
		eval[bool](p, `Promise.resolve(window.lab.seek(%s)).then(() => true)`, ms)
	}
	p.wait(`Math.abs(window.lab.time() - %s) < 1`, ms)
}

// node returns the node that an expression of JavaScript gives.
func (p *page) node(expression string) cdp.BackendNodeID {
	p.t.Helper()
	object := call(p, runtime.Evaluate, runtime.EvaluateParams{Expression: expression}).Result
	require.NotEmpty(p.t, object.ObjectID, "no element: %s", expression)
	return call(p, dom.DescribeNode, dom.DescribeNodeParams{ObjectID: object.ObjectID}).Node.BackendNodeID
}
