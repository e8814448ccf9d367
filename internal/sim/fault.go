package sim

import (
	"fmt"
	"time"

	"github.com/quorumlock/redlock/internal/history"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// inject makes a planned fault happen, and unhappen. It returns when it is over.
func (w *world) inject(number int, f FaultPlan) {
	time.Sleep(f.At)
	begin, end, text := w.fault(f)
	w.log.Add(history.Event{
		At: w.now(), Kind: history.Fault, Client: f.Client + 1, Node: f.Node + 1,
		Until: f.At + f.For, Text: fmt.Sprintf("[%d] %s", number, text),
	})
	begin()
	if end == nil {
		return
	}
	time.Sleep(f.For)
	end()
}

// fault says what a fault does, and what its end does; nil for one that is over at
// once.
func (w *world) fault(f FaultPlan) (begin, end func(), text string) {
	var p *path
	var m *redlocktest.Master
	if f.Client >= 0 && f.Node >= 0 {
		p = w.clients[f.Client].paths[f.Node]
	}
	if f.Node >= 0 {
		m = w.masters.Master(f.Node)
	}
	on := func(change func(p *path, on bool)) (func(), func()) {
		return func() { p.set(func(p *path) { change(p, true) }) }, func() { p.set(func(p *path) { change(p, false) }) }
	}
	switch f.Kind {
	case Delay:
		text = "slow"
		begin, end = on(func(p *path, on bool) { p.slow = on })
	case Late:
		text = "requests late"
		late := w.plan.Clients[f.Client].NodeTimeout
		begin, end = on(func(p *path, on bool) {
			if p.late = 0; on {
				p.late = late
			}
		})
	case LoseAsk:
		text = "loses requests"
		begin, end = on(func(p *path, on bool) { p.loseAsk = on })
	case LoseReply:
		text = "loses replies"
		begin, end = on(func(p *path, on bool) { p.loseReply = on })
	case Partition:
		text = "partition"
		if !f.Reply {
			text = "partition of requests"
		} else if !f.Ask {
			text = "partition of replies"
		}
		begin, end = on(func(p *path, on bool) { p.held = [2]bool{on && f.Ask, on && f.Reply} })
	case Refuse:
		text = "refused"
		begin, end = func() { p.Refuse(true); p.Break() }, func() { p.Refuse(false) }
	case Break:
		text = "connection cut"
		begin = p.Break
	case Hang:
		text = "hangs"
		begin, end = m.Stall, m.Resume
	case Crash:
		text = "down"
		begin, end = m.Kill, func() { w.must(m.Restart()) }
	case AmnesiaOK, Amnesia:
		text = "down, comes back without memory"
		begin, end = m.Kill, func() { w.must(m.RestartEmpty()); w.jumped(f.Node, history.Never) }
	case Flush:
		text = "loses its scripts"
		begin = func() { w.must(m.FlushScripts()) }
	case JumpBack:
		text = fmt.Sprintf("clock set back by %v", f.For)
		begin = func() { m.JumpClock(-f.For); w.jumped(f.Node, -f.For) }
	case JumpAhead:
		text = fmt.Sprintf("clock set ahead by %v", f.For)
		begin = func() { m.JumpClock(f.For); w.jumped(f.Node, f.For) }
	case Pause:
		text = "paused"
		begin, end = w.clients[f.Client].pause, w.clients[f.Client].resume
	}
	return begin, end, text
}
