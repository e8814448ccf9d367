package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/serverinfo"
	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

// A node is an address, and a server is behind it: at first the one with the node's own
// number. The faults here move addresses to other servers. Each takes a spare server, whose
// number is above those of the nodes' own.
const maxSpares = 4

// maxLag bounds how long a deposed master may go on granting, as min-replicas-max-lag does.
// The guard of runs with Deposed covers it.
const maxLag = time.Second

// drawMove decides how a fault that moves an address goes on.
func (f *FaultPlan) drawMove(r *rand.Rand, nodes int) {
	switch f.Kind {
	case EmptyPromotion:
		f.For = between(r, time.Millisecond, 50*time.Millisecond)
	case Excursion:
		f.For = between(r, time.Millisecond, longest)
		if r.IntN(3) > 0 {
			// Longer than the guard, so that the visitor's grants count.
			f.For = between(r, longest+100*time.Millisecond, 2*longest)
		}
	case Spare:
		f.For = 0
		f.Copied = r.IntN(2) == 0
	case Deposed:
		f.For = between(r, time.Millisecond, maxLag)
	case DeposedLong:
		f.For = between(r, time.Millisecond, longest)
	case LateInfo:
		f.For = believed + between(r, 0, 100*time.Millisecond)
	case Duplicate:
		f.For = between(r, 50*time.Millisecond, longest)
		if r.IntN(2) == 0 { // long enough for lanes to give their connections back, which they do after a second
			f.Lull = between(r, 1100*time.Millisecond, 1800*time.Millisecond)
			f.For += f.Lull
		}
	}
	f.Other, f.Third = -1, -1
	if nodes > 1 {
		f.Other = (f.Node + 1 + r.IntN(nodes-1)) % nodes
	}
	if third := (f.Node + 1 + r.IntN(nodes)) % nodes; third != f.Node && (f.Kind != Duplicate || third != f.Other) {
		f.Third = third
	}
}

// drawSpares assigns the spare servers. It drops faults for which none is left, and faults
// that may not overlap with others.
func (p *Plan) drawSpares() {
	p.Faults = slices.DeleteFunc(p.Faults, func(f FaultPlan) bool {
		return f.Kind == Duplicate && f.Other < 0
	})
	kept := p.Faults[:0]
	var next time.Duration // earliest begin of the next of these kinds: one at a time, so that the other nodes are a majority
	for _, f := range p.Faults {
		if slices.Contains([]Kind{LateInfo, Deposed, DeposedLong}, f.Kind) {
			if f.At < next {
				continue
			}
			next = f.At + f.For + longest + 500*time.Millisecond
		}
		if slices.Contains(takingOver, f.Kind) {
			if p.Spares == maxSpares {
				continue
			}
			f.Server = p.Nodes + p.Spares
			p.Spares++
		}
		kept = append(kept, f)
	}
	// If the other server's own address goes elsewhere meanwhile, a duplicate is an
	// independent server, as in an excursion, and nothing in Within allows for that.
	p.Faults = slices.DeleteFunc(slices.Clone(kept), func(f FaultPlan) bool {
		return f.Kind == Duplicate && slices.ContainsFunc(kept, func(g FaultPlan) bool {
			return g.Node == f.Other && slices.Contains(takingOver, g.Kind) &&
				g.At <= f.At+f.For && f.At <= g.At+g.For
		})
	})
}

// serves returns the server behind a node at a time, not counting duplicates.
func (p Plan) serves(node int, at time.Duration) (server int) {
	server = node
	since := time.Duration(-1)
	for i, f := range p.Faults {
		if f.Node != node || f.At > at || slices.Contains(p.Config.Without, i+1) || !slices.Contains(takingOver, f.Kind) {
			continue
		}
		if f.At > since && (f.Kind != Excursion || at < f.At+f.For) {
			server, since = f.Server, f.At
		}
	}
	return server
}

// home returns the node whose server this is, or whose address the server takes over.
func (p Plan) home(server int) (node int) {
	for _, f := range p.Faults {
		if f.Server == server && slices.Contains(takingOver, f.Kind) {
			return f.Node
		}
	}
	return server
}

func (w *world) server(node int) *inmemory.Master {
	return w.masters.Master(w.plan.serves(node, w.now()))
}

// servers lists the masters behind the nodes now, in the nodes' order.
func (w *world) servers() []*inmemory.Master {
	all := make([]*inmemory.Master, w.plan.Nodes)
	for i := range all {
		all[i] = w.server(i)
	}
	return all
}

// lead makes clients' new connections to a node lead to a server. It cuts the present ones,
// except those of clients that stay.
func (w *world) lead(node, server int, stays func(client int) bool) {
	for _, c := range w.clients {
		p := c.paths[node]
		p.Lead(w.masters.Master(server))
		if stays == nil || !stays(c.index) {
			p.Break()
			time.Sleep(time.Microsecond)
		}
	}
}

// moved is fault for the faults that move an address.
func (w *world) moved(f FaultPlan) (begin, end func(), text string) {
	old := w.plan.serves(f.Node, f.At-1)
	m := w.masters.Master(old)
	switch f.Kind {
	case EmptyPromotion:
		text = "restarts without memory, and a replica of that takes over"
		begin = m.Kill
		end = func() {
			w.must(m.RestartEmpty())
			w.must(m.FailOver())
			w.jumped(old, history.Never)
		}
	case LateInfo:
		text = "a server says late who it is, and has meanwhile been a replica and been promoted without memory"
		return w.lateInfo(f, m), w.endLateInfo(f, m, old), text
	case Excursion:
		text = "the address goes to another server, and comes back"
		begin = func() { w.lead(f.Node, f.Server, nil) }
		end = func() { w.lead(f.Node, old, nil) }
	case Spare:
		text = "the address goes to another server"
		begin = func() {
			if text, err := m.Miniredis().Get(recordKey); err == nil && f.Copied {
				_ = w.masters.Master(f.Server).Miniredis().Set(recordKey, text)
			}
			w.lead(f.Node, f.Server, nil)
		}
	case Deposed, DeposedLong:
		text = "a replica is promoted, and the old master goes on with those who are connected"
		begin = func() {
			next := w.masters.Master(f.Server)
			next.PromotedFrom(m)
			if text, err := m.Miniredis().Get(recordKey); err == nil {
				_ = next.Miniredis().Set(recordKey, text)
			}
			w.lead(f.Node, f.Server, func(client int) bool { return w.plan.stays(f, client) })
		}
		end = m.Kill
	case Duplicate:
		text = fmt.Sprintf("the address leads to node %d's server", f.Other+1)
		if f.Third >= 0 {
			text += fmt.Sprintf(", and node %d refuses", f.Third+1)
		}
		begin = func() {
			w.lull(f.Lull)
			w.refuse(f.Third, 1)
			w.lead(f.Node, w.plan.serves(f.Other, w.now()), nil)
		}
		end = func() {
			w.lead(f.Node, w.plan.serves(f.Node, w.now()), nil)
			w.refuse(f.Third, -1)
		}
	}
	return begin, end, text
}

// lateInfo returns the function that begins a LateInfo fault. It breaks the connections to
// a node and makes the node a replica soon after. The node's answers about its identity
// arrive only when it has been promoted again.
func (w *world) lateInfo(f FaultPlan, m *inmemory.Master) func() {
	return func() {
		for _, c := range w.clients {
			p := c.paths[f.Node]
			p.set(func(p *path) { p.lateInfo = f.For + time.Millisecond })
			p.Break()
			time.Sleep(time.Microsecond)
		}
		time.Sleep(lateBy)
		m.Demote()
	}
}

// lateBy is how long the server stays a master, so that clients can ask for its identity.
const lateBy = 20 * time.Millisecond

// endLateInfo returns the function that ends a LateInfo fault.
func (w *world) endLateInfo(f FaultPlan, m *inmemory.Master, server int) func() {
	return func() {
		w.forgetLatest(server, m.Miniredis().FlushAll)
		w.jumped(server, history.Never)
		m.Promote()
		for _, c := range w.clients {
			c.paths[f.Node].set(func(p *path) { p.lateInfo, p.lateReply = 0, 0 })
		}
	}
}

// refuse makes a node refuse all clients (n is 1), or accept them again (-1). A negative
// node is none.
func (w *world) refuse(node, n int) {
	if node < 0 {
		return
	}
	for _, c := range w.clients {
		p := c.paths[node]
		p.set(func(p *path) { p.refused += n })
		if n > 0 {
			p.Break()
		}
		time.Sleep(time.Microsecond)
	}
}

// lull keeps all clients from beginning anything for d, and waits for that.
func (w *world) lull(d time.Duration) {
	w.mu.Lock()
	w.rests = max(w.rests, w.now()+d)
	w.mu.Unlock()
	time.Sleep(d)
}

// resting returns for how long nobody may begin anything.
func (w *world) resting() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rests - w.now()
}

// grownOld makes some servers look promoted long ago to a client with the guard: INFO says
// that they were replicas once, and their identity records have old dates.
func (w *world) grownOld() {
	if w.plan.Guard == 0 || !anyOf(w.plan.Kinds, []Kind{Excursion, Spare}) {
		return
	}
	r := stream(w.plan.Config.Seed, "grown old")
	for _, m := range w.masters.All() {
		if r.IntN(2) == 0 {
			m.PromotedFrom(m)
			said := w.info(m)
			since := time.Now().Add(-between(r, 5*time.Second, inmemory.InitialUptime))
			_ = m.Miniredis().Set(recordKey, fmt.Sprintf("%s:%s %d", said["run_id"], said["master_replid"], since.UnixMilli()))
		}
	}
}

// info returns what a server says in INFO.
func (w *world) info(m *inmemory.Master) map[string]string {
	client := m.Client()
	defer client.Close()
	text, err := client.Info(background, "server", "replication").Result()
	w.must(err)
	return serverinfo.Fields(text)
}
