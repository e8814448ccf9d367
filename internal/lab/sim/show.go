package sim

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/lab/scene"
	"github.com/quorumlock/redlock/internal/slot"
	"github.com/quorumlock/redlock/quorum"
)

// show tells a viewer what happens in a run. A nil *show tells nobody. Its methods are safe for
// concurrent use.
type show struct {
	w    *world
	tell func(time.Duration, scene.Line)
	over atomic.Bool

	mu       sync.Mutex
	clients  *scene.Clients
	masters  []scene.Master
	waiters  map[string]int  // clients by the names under which they wait
	messages int             // how many have been sent
	seen     []history.Event // in a scenario: the events that can still be judged
	judged   int             // how many of these were there when they were last judged
}

func newShow(w *world, tell func(time.Duration, scene.Line)) *show {
	if tell == nil {
		return nil
	}
	s := &show{
		w: w, tell: tell, waiters: map[string]int{},
		clients: scene.NewClients(len(w.plan.Clients), w.plan.Nodes, quorum.Size(w.plan.Nodes)),
	}
	for i := range w.plan.Nodes {
		s.masters = append(s.masters, scene.Master{Node: i + 1, Up: true})
	}
	return s
}

// add logs an event, and shows it.
func (w *world) add(e history.Event) {
	w.log.Add(e)
	w.show.event(e)
}

// says tells the viewer something. mu is held.
func (s *show) says(l scene.Line) { s.tell(s.w.now(), l) }

// line tells the viewer something.
func (s *show) line(l scene.Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.says(l)
}

// on reports whether anybody still watches.
func (s *show) on() bool { return s != nil && !s.over.Load() }

// end makes the viewer leave. The checks after the work of a seed are long, and worth no look.
func (s *show) end() {
	if s != nil {
		s.over.Store(true)
	}
}

func (s *show) event(e history.Event) {
	if !s.on() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.says(scene.Event{Event: e, Line: e.String()})
	s.seen = append(s.seen, e)
	if s.clients.Saw(e) {
		s.says(s.clients.Client(e.Client))
	}
}

// vote shows what a server did, though it may not be known yet for which of its client's operations.
// The world's mu is held.
func (s *show) vote(v vote) {
	if !s.on() {
		return
	}
	for _, e := range s.w.eventsOf(v) {
		if e.Client > 0 && e.Op == 0 {
			e.Op = s.op(e.Client)
		}
		s.event(e)
	}
}

// op returns the operation that a client has under way; 0 if there is none.
func (s *show) op(client int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clients.Client(client); c.Asking != nil {
		return c.Asking.Op
	}
	return 0
}

// client changes what is seen of a client.
func (s *show) client(number int, change func(*scene.Client)) {
	if !s.on() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.clients.Client(number)
	s.clients.Set(number, change)
	if now := s.clients.Client(number); !same(before, now) {
		s.says(now)
	}
}

// same reports whether two states of a client look alike.
func same(a, b scene.Client) bool {
	return a.Last == b.Last && a.Working == b.Working && a.Writing == b.Writing && a.Suspended == b.Suspended && slices.Equal(a.Locks, b.Locks)
}

// voted shows a vote that a client has learned of.
func (s *show) voted(client, node int, op, vote string) {
	if !s.on() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients.Voted(client, node, op, vote) {
		s.says(s.clients.Client(client))
	}
}

// master changes what is seen of a master, and shows what it has stored.
func (s *show) master(node int, change func(*scene.Master)) {
	if !s.on() || node < 0 {
		return
	}
	has := s.read(s.w.server(node).Miniredis()) // with no mutex held: the server holds its own while it publishes
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &s.masters[node]
	if change != nil {
		change(m)
	}
	s.stored(m, has)
	s.says(*m)
}

// fault shows a fault of a master, or with no text its end.
func (s *show) fault(f FaultPlan, text string) {
	if f.Client >= 0 {
		return // the links show it
	}
	s.master(f.Node, func(m *scene.Master) {
		m.Role = text
		m.Up = text == "" || !slices.Contains([]Kind{Crash, Amnesia, AmnesiaOK, FailOver}, f.Kind)
		m.Hung = text != "" && f.Kind == Hang
		if text != "" && slices.Contains(forgetful, f.Kind) {
			m.Forgot++
		}
	})
}

// content is what a master has of a key.
type content struct {
	key, value string
	ttl        time.Duration
	token      int64
	queue      []string
}

// read reads what a master has.
func (s *show) read(redis *miniredis.Miniredis) (all []content) {
	for _, key := range s.w.plan.keys() {
		c := content{key: key}
		if c.value, _ = redis.Get(key); c.value != "" {
			c.ttl = redis.TTL(key)
		}
		fence, _ := redis.Get(slot.Sibling(slot.FencePrefix, key))
		c.token, _ = strconv.ParseInt(fence, 10, 64)
		c.queue, _ = redis.ZMembers(slot.Sibling(slot.QueuePrefix, key))
		all = append(all, c)
	}
	return append(all, s.w.slotsOn(redis)...)
}

// stored puts what a master has into its state. The mutexes of the world and of the show are held.
func (s *show) stored(m *scene.Master, has []content) {
	m.Keys, m.Fences, m.Queues = []scene.Key{}, []scene.Fence{}, []scene.Queue{}
	now := s.w.now()
	for _, c := range has {
		if c.value != "" {
			owner := s.w.ownerAt(c.value, now, -1)
			m.Keys = append(m.Keys, scene.Key{Key: c.key, Client: owner.client + 1, Op: owner.op, Until: now + c.ttl})
		}
		if c.token > 0 {
			m.Fences = append(m.Fences, scene.Fence{Key: c.key, Token: c.token})
		}
		if c.queue != nil {
			m.Queues = append(m.Queues, scene.Queue{Key: c.key, Clients: s.waiting(c.queue)})
		}
	}
}

// waiting returns the clients that wait under these names. mu is held.
func (s *show) waiting(names []string) []int {
	clients := []int{}
	for _, name := range names {
		if !strings.HasPrefix(name, "@") { // that is the deadline of a waiter that was woken
			id, _, _ := strings.Cut(name, " ")
			clients = append(clients, s.waiters[id])
		}
	}
	return clients
}

// names records under which name a client waits in a queue.
func (s *show) names(o order, client int) {
	id, waits := strings.CutPrefix(o.channel, wakePrefix)
	if !s.on() || !waits {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters[id] = client + 1
}

// recent returns the events of this last time, or none if there are no new ones of clients. It returns
// earlier ones too if locks from that time are still held.
func (s *show) recent(time time.Duration) []history.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.seen[s.judged:], func(e history.Event) bool { return e.Node == 0 && e.Client > 0 }) {
		return nil
	}
	from := s.w.now() - time
	for i := range s.w.clients {
		for _, l := range s.clients.Client(i + 1).Locks {
			from = min(from, l.Since-time)
		}
	}
	s.seen = slices.DeleteFunc(s.seen, func(e history.Event) bool { return e.At < from })
	s.judged = len(s.seen)
	events := slices.Clone(s.seen)
	history.Sort(events)
	return events
}
