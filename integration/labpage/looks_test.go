package labpage

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// looks are the ways in which people see the page.
func looks() []look {
	var all []look
	for _, as := range []look{wide, narrow} {
		for _, dark := range []bool{false, true} {
			as.dark, as.name = dark, map[bool]string{false: "light", true: "dark"}[dark]
			all = append(all, as)
		}
		as.dark, as.large, as.name = false, true, "large text"
		all = append(all, as)
	}
	return append(all, look{name: "reduced motion", width: wide.width, height: wide.height, reduced: true})
}

// However the page is shown, all text can be read: none is cut off, none needs scrolling sideways, and it
// stands out from its background.
func TestPageIsLegibleInEachLook(t *testing.T) {
	for _, as := range looks() {
		t.Run(fmt.Sprintf("%s at %d", as.name, as.width), func(t *testing.T) {
			inBrowser(t)
			s, err := serve()
			require.NoError(t, err)
			p := open(t, s.address, busy+"&until=2500", as)
			if as.large {
				eval[bool](p, `document.documentElement.style.fontSize = "200%", true`)
			}
			p.ready()
			p.wait(`document.body.dataset.state === "paused" && window.lab.time() >= 2500`)
			eval[bool](p, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
			p.screenshot("top")
			p.legible()
			p.picture("all")

			for _, menu := range []string{`.settings > summary`, `#m5 .more > summary`, `#c3 .more > summary`} {
				p.clickOn(p.reveal(menu))
				p.legible()
				p.screenshot(menu)
			}
			if as.reduced {
				p.play()
				p.wait(`window.lab.time() > 3000`)
				p.never("animations", `document.getAnimations().filter((a) => a.playState === "running" && a.effect.getComputedTiming().duration > 1).map((a) => a.animationName || a.transitionProperty)`)
				p.pause()
			}
		})
	}
}

// legible checks the text that is shown.
func (p *page) legible() {
	p.t.Helper()
	p.never("scrolls sideways", `document.documentElement.scrollWidth > document.documentElement.clientWidth ? [document.documentElement.scrollWidth + " px"] : []`)
	p.never("text is cut off", texts+`
	[...new Set(texts().filter(({ element, rect }) => {
		for (let e = element; e && e !== document.body; e = e.parentElement) {
			const style = getComputedStyle(e), box = e.getBoundingClientRect();
			if (/auto|scroll/.test(style.overflowX)) return false; // it can be scrolled to
			if (/hidden|clip/.test(style.overflowX) && (rect.left < box.left - 1 || rect.right > box.right + 1)) return true;
			if (/hidden|clip/.test(style.overflowY) && (rect.top < box.top - 2 || rect.bottom > box.bottom + 2)) return true;
		}
		return rect.left < -1 || rect.right > innerWidth + 1;
	}).map(({ element }) => element.className + ": " + element.textContent.trim().slice(0, 60)))]`)
	p.never("text is hard to tell from its background", texts+contrast+`
	[...new Set(texts().filter(({ element }) => !element.closest(":disabled") && ratio(element) < least(element))
		.map(({ element }) => ratio(element).toFixed(2) + " " + element.tagName + "." + element.className + ": " + element.textContent.trim().slice(0, 40)))]`)
}

// texts is a function of the page that returns all lines of text which are shown to the eye.
const texts = `var texts = () => {
	const lines = [];
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let node; (node = walker.nextNode());) {
		const element = node.parentElement;
		if (!node.data.trim() || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
		if (element.closest(".hidden, .skip, script, style, noscript, title")) continue; // for screen readers
		const range = document.createRange();
		range.selectNodeContents(node);
		for (const rect of range.getClientRects()) if (rect.width > 0) lines.push({ element, rect });
	}
	return lines;
};`

// contrast is a function of the page that returns the contrast of a text, as WCAG 2 has it, and one that
// returns the least that it asks for.
const contrast = `var pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
var rgba = (color) => {
	pen.clearRect(0, 0, 1, 1);
	pen.fillStyle = color;
	pen.fillRect(0, 0, 1, 1);
	const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
	return [r, g, b, a / 255];
};
var over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
var behind = (element) => {
	if (!element) return [255, 255, 255, 1];
	const color = rgba(getComputedStyle(element).backgroundColor);
	return color[3] === 1 ? color : over(color, behind(element.parentElement));
};
var light = (color) => {
	const [r, g, b] = color.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
var ratio = (element) => {
	const below = behind(element);
	const a = light(over(rgba(getComputedStyle(element).color), below)), b = light(below);
	return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
};
var least = (element) => {
	const { fontSize, fontWeight } = getComputedStyle(element);
	const size = parseFloat(fontSize);
	return size >= 24 || (size >= 18.66 && fontWeight >= 700) ? 3 : 4.5;
};`

// named are the roles of controls, which need a name.
var named = map[string]bool{
	"button": true, "link": true, "textbox": true, "searchbox": true, "spinbutton": true, "checkbox": true, "switch": true, "slider": true,
	"combobox": true, "listbox": true, "radio": true, "tab": true, "menuitem": true, "DisclosureTriangle": true, "image": true, "alertdialog": true, "dialog": true,
}

// A screen reader has a name for each control, and no two buttons have the same.
func TestEachControlHasAName(t *testing.T) {
	p := openLab(t, busy+"&until=2500")
	p.wait(`document.body.dataset.state === "paused" && window.lab.time() >= 2500`)
	eval[bool](p, `document.querySelectorAll("details").forEach((d) => d.open = true), true`)
	found := map[string]int{}
	for _, node := range controls(p) {
		role, name := text(node.Role), text(node.Name)
		if named[role] {
			assert.NotEmpty(t, name, "a %s without a name: %s", role, callOn[string](p, node.BackendDOMNodeID, `function() { return this.outerHTML?.slice(0, 200) ?? "" }`))
			found[role+" "+name]++
		}
	}
	for name, n := range found {
		// Several events of the log may have happened at one time, to which their buttons lead.
		assert.True(t, n == 1 || !strings.HasPrefix(name, "button ") || strings.HasSuffix(name, " s"), "%d times %s", n, name)
	}
	t.Logf("%d names of controls", len(found))
	assert.Greater(t, len(found), 100)
}

// The keyboard reaches the controls, shows where it is, and does what the mouse does.
func TestKeyboardAlone(t *testing.T) {
	p := openLab(t, "seed=1&do=0-work-c1,0-work-c2")
	p.pause()
	tab := func() string {
		require.NoError(t, chromedp.Do(p.ctx, chromedp.KeyEvent(kb.Tab)))
		return eval[string](p, `(() => {
			const e = document.activeElement;
			if (e === document.body) return "";
			const style = getComputedStyle(e);
			const marked = (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
			return (marked && e.checkVisibility() ? "" : "unmarked ") + (e.ariaLabel || e.textContent.trim() || e.name || e.id);
		})()`)
	}
	var order []string
	for range 150 {
		at := tab()
		if len(order) > 0 && (at == order[0] || at == "") {
			break
		}
		order = append(order, at)
	}
	t.Logf("%d stops of the tab key: %q", len(order), order)
	for _, at := range order {
		assert.NotContains(t, at, "unmarked")
	}
	all := "\n" + strings.Join(order, "\n") + "\n"
	for _, name := range []string{"Play", "Timeline", "Kill master 1", "More for master 1", "Pause client 1", "Two masters die, and nothing happens", "Settings"} {
		assert.Contains(t, all, "\n"+name+"\n", "not reached by the tab key")
	}

	// The space bar plays and pauses; arrows move along the timeline.
	eval[bool](p, `document.activeElement.blur(), true`)
	require.NoError(t, chromedp.Do(p.ctx, chromedp.KeyEvent(" ")))
	p.wait(`document.body.dataset.state === "playing" && window.lab.time() > 1500`)
	require.NoError(t, chromedp.Do(p.ctx, chromedp.KeyEvent(" ")))
	p.wait(`document.body.dataset.state === "paused"`)
	before := eval[float64](p, `window.lab.time()`)
	p.press("slider", "Timeline", kb.ArrowLeft)
	p.wait(`window.lab.time() < %s`, before)
	p.press("slider", "Timeline", kb.Home)
	p.wait(`window.lab.time() === 0`)
	p.wait(`document.getElementById("timeline").ariaValueNow === "0"`)
}

// picture writes a picture of the whole page, as far as it can be scrolled.
func (p *page) picture(name string) {
	if os.Getenv("LABPAGE_SCREENSHOTS") == "" {
		return
	}
	content, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	p.save(name, content, err)
}
