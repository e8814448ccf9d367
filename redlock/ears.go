package redlock

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// ears hears the wake-ups for all waits of a Redlock: on each server, whoever wakes one
// says so on the Redlock's own channel, so that nobody hears what is not for him.
type ears struct {
	r        *Redlock
	id       string // the channels, without their common prefix
	channel  string // on which a single server says everything
	ctx      context.Context
	cancel   context.CancelFunc
	gone     context.Context // has ended
	stations []station
	running  sync.WaitGroup

	mu    sync.Mutex
	waits map[string]*wait            // by name
	on    map[string]map[string]*wait // the same by channel of a Cluster, then by name
	late  map[string]*wait            // those that were over last
	swept time.Time                   // when late was last looked through for old ones
	began time.Time                   // when there was none before
	muted []bool                      // nodes of which it was said that they do not let us listen
	deaf  []error                     // why nodes did not let us listen when nobody waited; nil: they did
	keeps bool                        // there are kept locks, which listen too

	notices notices
}

const (
	// lateFor is how long after its end the messages for a wait are taken to have crossed
	// with what ended it, which has told all nodes. After that the node was not reached.
	lateFor = time.Second
	// manyLate is from when on it is worth looking for those that can be forgotten.
	manyLate = 64
)

// station is how one node is listened to. Its methods do not block.
type station interface {
	// channel returns the channel on which messages for a key come.
	channel(name string) string
	// tune has a channel listened to, and hears reports whether it is.
	tune(channel string)
	hears(channel string) bool
	// renew has the server at an address listened to anew, as another one is there now.
	renew(addr string)
	// rest says that nobody waits just now, close that nobody will again.
	rest(now time.Time)
	close()
}

func newEars(r *Redlock, id string) *ears {
	e := &ears{
		r: r, id: id, channel: protocol.WakePrefix + id, waits: map[string]*wait{}, on: map[string]map[string]*wait{}, late: map[string]*wait{},
		muted: make([]bool, len(r.nodes)), deaf: make([]error, len(r.nodes)),
	}
	e.notices.ears = e
	e.ctx, e.cancel = context.WithCancel(context.Background())
	var end context.CancelFunc
	e.gone, end = context.WithCancel(e.ctx)
	end()
	for i, n := range r.nodes {
		if cluster := n.Cluster(); cluster != nil {
			e.stations = append(e.stations, newShards(e, i, cluster, n.BesideMaster))
		} else {
			e.stations = append(e.stations, oneEar{&ear{ears: e, node: i, client: n.Client(), channels: map[string]bool{}}})
		}
	}
	return e
}

// begin has a wait woken from as soon as that is possible.
func (e *ears) begin(w *wait) {
	e.mu.Lock()
	if len(e.waits) == 0 {
		e.began = e.r.cfg.Clock.Now()
	}
	e.waits[w.name] = w
	if e.r.clustered {
		channel := e.sharded(w.name)
		if e.on[channel] == nil {
			e.on[channel] = map[string]*wait{}
		}
		e.on[channel][w.name] = w
	}
	deaf := slices.Clone(e.deaf)
	e.mu.Unlock()
	for node, err := range deaf {
		if err != nil {
			e.refused(node, err)
		}
	}
	e.tune(w)
}

// sharded returns the channel on which messages for a key come from a Cluster.
func (e *ears) sharded(name string) string {
	return protocol.WakePrefix + protocol.ShardChannel(e.id, name)
}

func (e *ears) tune(w *wait) {
	for _, s := range e.stations {
		s.tune(s.channel(w.name))
	}
}

func (e *ears) hears(node int, w *wait) bool {
	s := e.stations[node]
	return s.hears(s.channel(w.name))
}

// end is for a wait that is over. Its last messages may be on their way, also while the
// lock is held that it won.
func (e *ears) end(w *wait) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.r.cfg.Clock.Now()
	if e.waits[w.name] == w {
		delete(e.waits, w.name)
		if e.r.clustered {
			channel := e.sharded(w.name)
			delete(e.on[channel], w.name)
			if len(e.on[channel]) == 0 {
				delete(e.on, channel)
			}
		}
	}
	e.rest(now)
	if len(e.late) >= manyLate && now.Sub(e.swept) >= lateFor {
		e.swept = now
		maps.DeleteFunc(e.late, func(_ string, w *wait) bool { return w.forgotten(now) })
	}
	e.late[w.name] = w
}

// keep says whether there are kept locks.
func (e *ears) keep(some bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.keeps = some
	e.rest(e.r.cfg.Clock.Now())
}

// rest lets the stations rest if nobody needs them; mu is held.
func (e *ears) rest(now time.Time) {
	if len(e.waits) == 0 && !e.keeps {
		for _, s := range e.stations {
			s.rest(now)
		}
	}
}

// fresh reports that those who listen have only begun to, and may need a moment.
func (e *ears) fresh() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.r.cfg.Clock.Now().Sub(e.began) < introduction
}

// message is what a node has said: a ticket, and of which key, behind a mark if that is
// second in the queue; see wake.lua. If a wait that was woken is over the answer is to leave.
func (e *ears) message(node int, said string) {
	if e.notices.said(node, said) {
		return
	}
	wake, ok := protocol.ParseWake(said)
	if !ok {
		return // nothing that we have sent
	}
	e.mu.Lock()
	w := e.waits[wake.NodeKey]
	if w == nil && !wake.Second {
		w = e.late[wake.NodeKey]
	}
	e.mu.Unlock()
	if wake.Second {
		if w != nil {
			w.second(wake.Ticket)
		}
		return
	}
	if w != nil && w.woken(node, wake.Ticket) {
		return
	}
	who, sharded := e.r.names(wake.NodeKey)
	e.r.leaveAt(node, strings.TrimPrefix(wake.NodeKey, e.r.cfg.KeyPrefix), wake.NodeKey,
		&protocol.Entry{Name: who, ShardName: sharded, Ticket: protocol.TicketText(wake.Ticket)}, time.Time{})
}

// found and lost tell the waits of one channel of a node that they can be woken by the node,
// or cannot any more. Other waits are told nothing: each of them would ask the node for its
// place again, so that many waits on a Cluster would cost it the square of their number.
func (e *ears) found(node int, channel string) {
	e.mu.Lock()
	e.deaf[node] = nil
	e.mu.Unlock()
	if e.stations[node].hears(channel) {
		for _, w := range e.of(channel) {
			w.found(node)
		}
	}
}

func (e *ears) lost(node int, channel string) {
	for _, w := range e.of(channel) {
		w.lost(node)
	}
}

// of returns the waits that are woken on a channel.
func (e *ears) of(channel string) []*wait {
	e.mu.Lock()
	defer e.mu.Unlock()
	waits := e.waits
	if channel != e.channel {
		waits = e.on[channel]
	}
	all := make([]*wait, 0, len(waits))
	for _, name := range slices.Sorted(maps.Keys(waits)) { // so that a simulation can be repeated
		all = append(all, waits[name])
	}
	return all
}

// renew is for a lane that has met another server than before at an address of its node.
func (e *ears) renew(node int, addr string) { e.stations[node].renew(addr) }

// refused tells, once, that a node does not let us listen: it is looked at instead. Only
// those who wait need to know; kept locks are renewed as ever.
func (e *ears) refused(node int, err error) {
	e.mu.Lock()
	said := e.muted[node]
	if len(e.waits) == 0 {
		e.deaf[node] = err
		said = true
	} else {
		e.muted[node] = true
	}
	e.mu.Unlock()
	if !said {
		e.r.log.Warn("node does not let us queue, waiting by looking", "node", e.r.nodes[node].Addr, "error", errs.Scrub(err, "").Error())
	}
}

// sleep reports false if the ears were closed meanwhile.
func (e *ears) sleep(d time.Duration) bool {
	timer := e.r.cfg.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-e.ctx.Done():
		return false
	}
}

// close ends all listening, and wait returns when it has: that may take as long as a
// silent node's handshake.
func (e *ears) close() {
	e.cancel()
	e.notices.close()
	for _, s := range e.stations {
		s.close()
	}
}

func (e *ears) wait() { e.running.Wait() }

// oneEar is the station of a single server, which says everything on one channel.
type oneEar struct{ *ear }

func (o oneEar) channel(string) string { return o.ears.channel }
func (o oneEar) renew(string)          { o.ear.renew() }
