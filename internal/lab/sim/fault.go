package sim

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

// inject begins a planned fault and ends it. It returns when the fault is over.
func (w *world) inject(number int, f FaultPlan) {
	var grips sync.WaitGroup
	for _, at := range f.grips() {
		grips.Go(func() { w.grip(number, f, at) })
	}
	defer grips.Wait()
	time.Sleep(f.At)
	begin, end, text := w.fault(f)
	w.add(history.Event{
		At: w.now(), Kind: history.Fault, Client: f.Client + 1, Node: f.Node + 1,
		Until: f.At + f.For, Text: fmt.Sprintf("[%d] %s", number, text),
	})
	begin()
	w.show.fault(f, text)
	if end == nil {
		return
	}
	time.Sleep(f.At + f.For - w.now())
	end()
	w.show.fault(f, "")
}

// fault returns functions that begin and end a fault, and a description. end is nil for a
// fault that is over at once.
func (w *world) fault(f FaultPlan) (begin, end func(), text string) {
	var m *inmemory.Master
	server := -1
	if f.Node >= 0 {
		server = w.plan.serves(f.Node, w.now())
		m = w.masters.Master(server)
	}
	if slices.Contains(moves, f.Kind) {
		return w.moved(f)
	}
	// on begins a fault by calling change with 1 for each path that it hits, and ends it by
	// calling change with -1.
	on := func(change func(p *path, n int)) (func(), func()) {
		hit := func(n int) {
			for _, p := range w.hits(f) {
				p.set(func(p *path) { change(p, n) })
			}
		}
		return func() { hit(1) }, func() { hit(-1) }
	}
	switch f.Kind {
	case Delay:
		text = "slow"
		begin, end = on(func(p *path, n int) { p.slow += n })
	case Late:
		text = "requests late"
		late := w.plan.Clients[f.Client].NodeTimeout
		if !f.Ask {
			late = late * 2 / 5 // in time for the round, but not for a short ttl
		}
		begin, end = on(func(p *path, n int) { p.late += time.Duration(n) * late })
	case LoseAsk:
		text = "loses requests"
		begin, end = on(func(p *path, n int) { p.loseAsk += n })
	case LoseReply:
		text = "loses replies"
		begin, end = on(func(p *path, n int) { p.loseReply += n })
	case Tear:
		text = f.ways("tears batches", "tears requests", "tears replies")
		begin, end = on(func(p *path, n int) { f.hit(&p.torn, n) })
	case Partition:
		text = f.ways("partition", "partition of requests", "partition of replies")
		begin, end = on(func(p *path, n int) { f.hit(&p.held, n) })
	case Refuse:
		text = "refused"
		refuse, accept := on(func(p *path, n int) { p.refused += n })
		begin, end = func() { refuse(); w.cut(f) }, accept
	case Break:
		text = "connection cut"
		begin = func() { w.cut(f) }
	case Hang:
		text = "hangs"
		begin, end = m.Stall, m.Resume
	case Crash:
		text = "down"
		begin, end = m.Kill, func() { w.must(m.Restart()) }
	case FailOver:
		text = "fails over to a replica that has heard of nothing"
		begin, end = m.Kill, func() { w.forgetLatest(server, func() { w.must(m.FailOver()) }); w.jumped(server, history.Never) }
	case FailBack:
		text = "is a replica, and promoted without memory"
		begin = m.Demote
		end = func() { w.forgetLatest(server, m.Miniredis().FlushAll); w.jumped(server, history.Never); m.Promote() }
	case AmnesiaOK, Amnesia:
		text = "down, comes back without memory"
		begin, end = m.Kill, func() { w.must(m.RestartEmpty()); w.jumped(server, history.Never) }
	case LoseWake:
		text = "loses wake-ups"
		begin, end = func() { m.LoseMessages(-1) }, func() { m.LoseMessages(0) }
	case LateWake:
		text = fmt.Sprintf("wakes up %v late", f.Late)
		begin, end = func() { m.DelayMessages(f.Late) }, func() { m.DelayMessages(0) }
	case Deafen:
		text = "subscribers cut off"
		begin = m.BreakSubscriptions
		if f.For > 0 {
			text = "subscribers cut off, and refused"
			begin, end = func() { m.RefuseSubscriptions(noSubscribe); m.BreakSubscriptions() }, func() { m.RefuseSubscriptions("") }
		}
	case LockOut:
		text = "answers " + f.Says
		begin, end = func() { m.RefuseCommands(f.Says) }, func() { m.RefuseCommands("") }
	case Flush:
		text = "loses its scripts"
		begin = func() { w.must(m.FlushScripts()) }
	case JumpBack:
		text = fmt.Sprintf("clock set back by %v", f.For)
		begin = func() { m.JumpClock(-f.For); w.jumped(server, -f.For) }
	case JumpAhead:
		text = fmt.Sprintf("clock set ahead by %v", f.For)
		begin = func() { m.JumpClock(f.For); w.jumped(server, f.For) }
	case Replace:
		text = "process dies"
		if f.Closes {
			text = "process closes, and ends"
		}
		begin = func() { w.clients[f.Client].leave(f.Closes, f.For/4) }
	case Pause:
		text = "paused"
		begin, end = w.clients[f.Client].pause, w.clients[f.Client].resume
	}
	return begin, end, text
}

// noSubscribe is the answer of a server whose rights were changed for a moment.
const noSubscribe = "NOPERM this user has no permissions to run the 'subscribe' command"

// forgetLatest lets a replica that lacks the latest keys take over. The replica keeps the
// identity record, which was written and replicated long before them.
func (w *world) forgetLatest(number int, takeOver func()) {
	server := w.masters.Master(number).Miniredis()
	mark, err := server.Get(recordKey)
	takeOver()
	if err == nil {
		_ = server.Set(recordKey, mark)
	}
}

// ways returns the name of a network fault by its directions.
func (f FaultPlan) ways(both, asks, replies string) string {
	switch {
	case !f.Reply:
		return asks
	case !f.Ask:
		return replies
	}
	return both
}

// hit adds n to the count of each direction that the fault has.
func (f FaultPlan) hit(count *[2]int, n int) {
	if f.Ask {
		count[faultlink.ToServer] += n
	}
	if f.Reply {
		count[faultlink.ToClient] += n
	}
}

// hits lists the paths that a network fault hits: one, or all of a client.
func (w *world) hits(f FaultPlan) []*path {
	paths := w.clients[f.Client].paths
	if f.Node >= 0 {
		return paths[f.Node : f.Node+1]
	}
	return paths
}

// cut breaks connections, one after the other, so that a run can be repeated.
func (w *world) cut(f FaultPlan) {
	for i, p := range w.hits(f) {
		if i > 0 {
			time.Sleep(time.Microsecond)
		}
		p.Break()
	}
}
