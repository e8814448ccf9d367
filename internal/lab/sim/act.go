package sim

import (
	"fmt"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/lab/scenario"
	"github.com/quorumlock/redlock/internal/lab/scene"
	"github.com/quorumlock/redlock/internal/testenv/faultlink"
)

// act does what the action says. An action that makes no sense now, such as the restart of a client that
// lives, does nothing.
func (st *Stage) act(a scenario.Action) {
	switch a.Verb {
	case scenario.Kill, scenario.Restart, scenario.Forget, scenario.Hang, scenario.Resume, scenario.Ahead, scenario.Back:
		st.actOnMaster(a)
	case scenario.Cut, scenario.CutAsk, scenario.CutAnswer, scenario.Lose, scenario.Slow, scenario.Heal:
		st.actOnLinks(a)
	default:
		st.actors[a.Client-1].act(a.Verb)
	}
}

// did records an action that had an effect.
func (st *Stage) did(a scenario.Action) {
	a.At = st.w.now()
	st.done = append(st.done, a)
}

// fault logs a fault.
func (st *Stage) fault(a scenario.Action, text string) {
	st.w.add(history.Event{At: st.w.now(), Kind: history.Fault, Client: a.Client, Node: a.Node, Text: text})
}

func (st *Stage) actOnMaster(a scenario.Action) {
	w, server := st.w, a.Node-1
	m := w.masters.Master(server)
	switch now := w.show.masters[server]; {
	case a.Verb == scenario.Kill && !now.Up, a.Verb == scenario.Hang && (now.Hung || !now.Up), a.Verb == scenario.Resume && !now.Hung:
		return
	}
	st.did(a)
	var change func(*scene.Master)
	switch a.Verb {
	case scenario.Kill:
		st.fault(a, "down")
		m.Kill()
		change = func(s *scene.Master) { s.Up, s.Hung = false, false }
		st.lose(server)
	case scenario.Restart:
		st.fault(a, "up again, with its memory")
		w.must(m.Restart())
		change = func(s *scene.Master) { s.Up, s.Hung = true, false }
		st.lose(server)
	case scenario.Forget:
		st.fault(a, "restarted without its memory")
		w.must(m.RestartEmpty())
		w.jumped(server, history.Never)
		change = func(s *scene.Master) { s.Up, s.Hung = true, false; s.Forgot++ }
		st.lose(server)
	case scenario.Hang:
		st.fault(a, "hangs")
		m.Stall()
		change = func(s *scene.Master) { s.Hung = true }
	case scenario.Resume:
		st.fault(a, "goes on")
		m.Resume()
		change = func(s *scene.Master) { s.Hung = false }
	case scenario.Ahead, scenario.Back:
		d := a.Arg
		text := fmt.Sprintf("clock set ahead by %v", d)
		if a.Verb == scenario.Back {
			text, d = fmt.Sprintf("clock set back by %v", d), -d
		}
		st.fault(a, text)
		m.JumpClock(d)
		w.jumped(server, d)
		change = func(s *scene.Master) { s.Jumped += d }
	}
	w.show.master(server, change)
}

// lose shows that what was on its way from and to a master is lost.
func (st *Stage) lose(server int) {
	for _, c := range st.w.clients {
		c.paths[server].gone(faultlink.ToServer)
		c.paths[server].gone(faultlink.ToClient)
	}
}

// cuts are the directions that an action cuts.
var cuts = map[scenario.Verb][2]bool{
	scenario.Cut:       {true, true},
	scenario.CutAsk:    {faultlink.ToServer: true},
	scenario.CutAnswer: {faultlink.ToClient: true},
}

func (st *Stage) actOnLinks(a scenario.Action) {
	text := map[scenario.Verb]string{
		scenario.Cut: "partition", scenario.CutAsk: "partition of requests", scenario.CutAnswer: "partition of replies",
		scenario.Lose: "loses replies", scenario.Slow: fmt.Sprintf("slower by %v", a.Arg), scenario.Heal: "healed",
	}[a.Verb]
	st.fault(a, text)
	for i, c := range st.w.clients {
		for node, p := range c.paths {
			if (a.Client == 0 || a.Client == i+1) && (a.Node == 0 || a.Node == node+1) {
				p.set(func(p *path) { p.act(a) })
			}
		}
	}
}

// act changes what a scenario does to the path. mu is held.
func (p *path) act(a scenario.Action) {
	cut := func(want [2]bool) {
		for d := range want {
			switch {
			case want[d] && !p.cut[d]:
				p.held[d]++
			case !want[d] && p.cut[d]:
				p.held[d]--
			}
			p.cut[d] = want[d]
		}
	}
	switch a.Verb {
	case scenario.Cut, scenario.CutAsk, scenario.CutAnswer:
		cut(cuts[a.Verb])
	case scenario.Lose:
		p.loseAll = true
	case scenario.Slow:
		p.far = a.Arg
	case scenario.Heal:
		cut([2]bool{})
		p.loseAll, p.far = false, 0
	}
}

// handOver passes on what actions do to the path of a client whose process has ended.
func (p *path) handOver(next *path) {
	p.mu.Lock()
	cut, loseAll, far, shown := p.cut, p.loseAll, p.far, p.traffic.shown
	p.mu.Unlock()
	next.set(func(next *path) {
		for d := range cut {
			if next.cut[d] = cut[d]; cut[d] {
				next.held[d]++
			}
		}
		next.loseAll, next.far, next.traffic.shown = loseAll, far, shown
	})
}
