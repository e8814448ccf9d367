package labpage

import (
	"encoding/json"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// find returns the controls with a role and a name, as a screen reader sees them.
func (p *page) find(role, name string) (found []cdp.BackendNodeID) {
	result, err := chromedp.Call(p.ctx, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{
		BackendNodeID: p.document(), Role: role, AccessibleName: name,
	})
	if err != nil {
		return nil // the node may have gone
	}
	for _, node := range result.Nodes {
		if !node.Ignored {
			found = append(found, node.BackendDOMNodeID)
		}
	}
	return found
}

// control waits for the one control with a role and a name.
func (p *page) control(role, name string) (node cdp.BackendNodeID) {
	p.t.Helper()
	var found []cdp.BackendNodeID
	require.Eventually(p.t, func() bool { found = p.find(role, name); return len(found) > 0 }, time.Minute, 50*time.Millisecond, "no %s %q", role, name)
	require.Len(p.t, found, 1, "several %s %q", role, name)
	return found[0]
}

// click clicks a control with the mouse.
func (p *page) click(role, name string) {
	p.t.Helper()
	p.clickOn(p.control(role, name))
}

// clickOn clicks a node with the mouse, in its middle. It scrolls as a reader does who wants to see the node,
// and fails if another element covers it all the same.
func (p *page) clickOn(node cdp.BackendNodeID) {
	p.t.Helper()
	at := callOn[struct {
		Name    string
		Covered bool
		X, Y    float64
	}](p, node, `function() {
		const look = () => {
			const box = this.getBoundingClientRect();
			const [X, Y] = [box.x + box.width / 2, box.y + box.height / 2];
			const top = document.elementFromPoint(X, Y);
			return { Name: this.outerHTML.slice(0, 200), Covered: !this.contains(top), X, Y };
		};
		if (look().Covered) this.scrollIntoView({ block: "center", behavior: "instant" });
		return look();
	}`)
	require.False(p.t, at.Covered, "covered: %s", at.Name)
	require.NoError(p.t, chromedp.Do(p.ctx, chromedp.MouseClickXY(at.X, at.Y)))
}

// press moves the focus to a control and presses keys.
func (p *page) press(role, name, keys string) {
	p.t.Helper()
	call(p, dom.Focus, dom.FocusParams{BackendNodeID: p.control(role, name)})
	require.NoError(p.t, chromedp.Do(p.ctx, chromedp.KeyEvent(keys)))
}

// callOn calls a function of JavaScript on a node.
func callOn[T any](p *page, node cdp.BackendNodeID, function string, args ...any) T {
	p.t.Helper()
	object := call(p, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: node}).Object
	value, err := chromedp.Run(p.ctx, chromedp.CallFunctionOn[T](function, func(c *runtime.CallFunctionOnParams) { c.ObjectID = object.ObjectID }, args...))
	require.NoError(p.t, err)
	return value
}

// controls returns all controls of the page, by role, with their names.
func controls(p *page) (found []*accessibility.Node) {
	p.t.Helper()
	for _, node := range call(p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if !node.Ignored && node.Role != nil && node.BackendDOMNodeID != 0 {
			found = append(found, node)
		}
	}
	return found
}

// text returns a role or a name.
func text(value *accessibility.Value) string {
	if value == nil {
		return ""
	}
	var s string
	_ = json.Unmarshal(value.Value, &s)
	return s
}
