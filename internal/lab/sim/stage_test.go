package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/lab/scenario"
	"github.com/quorumlock/redlock/internal/lab/scene"
)

// seen is what can be seen of a scenario.
type seen struct {
	events     []history.Event
	violations []scene.Violation
	masters    map[int]scene.Master
	clients    map[int]scene.Client
	links      map[[2]int]scene.Link
	resource   scene.Resource
	sent       []scene.Sent
	ended      map[int]bool // messages that arrived, or never will
	lines      []string
}

func (s *seen) see(t *testing.T, at time.Duration, l scene.Line) {
	text, err := scene.Encode(at, l)
	require.NoError(t, err)
	s.lines = append(s.lines, string(text))
	switch l := l.(type) {
	case scene.Event:
		s.events = append(s.events, l.Event)
	case scene.Violation:
		s.violations = append(s.violations, l)
	case scene.Master:
		s.masters[l.Node] = l
	case scene.Client:
		s.clients[l.Client] = l
	case scene.Link:
		s.links[[2]int{l.Client, l.Node}] = l
	case scene.Resource:
		s.resource = l
	case scene.Sent:
		s.sent = append(s.sent, l)
	case scene.Arrived:
		s.ended[l.ID] = true
	case scene.Gone:
		s.ended[l.ID] = true
	}
}

// play plays a scenario up to its Until.
func play(t *testing.T, query string) *seen {
	t.Helper()
	s, err := scenario.Parse(query)
	require.NoError(t, err)
	require.NotZero(t, s.Until)
	all := &seen{masters: map[int]scene.Master{}, clients: map[int]scene.Client{}, links: map[[2]int]scene.Link{}, ended: map[int]bool{}}
	over := false
	st := NewStage(s, func(at time.Duration, l scene.Line) {
		if !over {
			all.see(t, at, l)
		}
	})
	todo := s.Actions
	for at := time.Duration(0); at < s.Until; at += scenario.Tick {
		n := 0
		for n < len(todo) && todo[n].At <= at {
			n++
		}
		require.True(t, st.Advance(todo[:n]))
		todo = todo[n:]
	}
	over = true
	require.NoError(t, st.Close())
	return all
}

func (s *seen) rules() (rules []string) {
	for _, v := range s.violations {
		rules = append(rules, v.Rule)
	}
	return rules
}

func TestStageAcquires(t *testing.T) {
	s := play(t, "do=10-acquire-c1,2000-acquire-c2,4000-release-c1&until=5000")
	assert.Empty(t, s.rules())
	assert.Equal(t, scene.Holding, s.clients[2].State)
}

func (s *seen) kinds(client int) (kinds []history.Kind) {
	for _, e := range s.events {
		if e.Client == client && e.Node == 0 {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds
}

func (s *seen) count(client int, kind history.Kind) (n int) {
	for _, k := range s.kinds(client) {
		if k == kind {
			n++
		}
	}
	return n
}

// Two of five masters are not missed. Without the third one nobody gets the lock, and nobody has it twice.
func TestStageMastersDie(t *testing.T) {
	s := play(t, "do=100-kill-m1,100-kill-m2,200-acquire-c1,2000-release-c1,2500-kill-m3,2600-try-c2&until=4500")
	assert.Empty(t, s.rules())
	assert.Equal(t, 1, s.count(1, history.Granted))
	assert.Equal(t, 0, s.count(2, history.Granted))
	assert.Equal(t, 1, s.count(2, history.Denied))
	assert.Contains(t, s.clients[2].Last, "no quorum")
	for node, up := range []bool{false, false, false, true, true} {
		assert.Equal(t, up, s.masters[node+1].Up, node)
	}
	s = play(t, "do=100-kill-m1,100-kill-m2,100-kill-m3,200-acquire-c1,1000-restart-m3&until=4000")
	assert.Equal(t, scene.Holding, s.clients[1].State, "it waited until there was a majority")
}

// A master that forgets gives two holders, and none with the guard.
func TestStageMastersForget(t *testing.T) {
	const forgets = "do=100-acquire-c1,1500-acquire-c2,2000-forget-m1,2000-forget-m2,2000-forget-m3&until=4500"
	s := play(t, forgets)
	require.Equal(t, []string{history.Exclusion}, s.rules())
	v := s.violations[0]
	assert.Equal(t, []int{1, 2}, v.Clients)
	require.Len(t, v.Locks, 2)
	assert.Less(t, v.Locks[1].From, v.Locks[0].Until)
	assert.Contains(t, v.Excused, "forgot")
	assert.Contains(t, v.Remedy, "RestartGuard")
	assert.Equal(t, 1, s.masters[1].Forgot)
	assert.Equal(t, 0, s.masters[4].Forgot)

	s = play(t, forgets+"&guard=1")
	assert.Empty(t, s.rules())
	assert.Equal(t, 0, s.count(2, history.Granted))
	assert.Greater(t, s.masters[1].Guarded, 4*time.Second)
	assert.Zero(t, s.masters[4].Guarded)
}

// A paused holder writes late. Its token is refused; without tokens it overwrites what is newer.
func TestStageLateWrite(t *testing.T) {
	const late = "ttl=2s&do=100-acquire-c1,600-write-c1,700-pause-c1,900-acquire-c2,3500-write-c2,5500-continue-c1&until=7000"
	s := play(t, late+"&fencing=1")
	assert.Empty(t, s.rules())
	require.Len(t, s.resource.Writes, 2)
	first, second := s.resource.Writes[0], s.resource.Writes[1]
	assert.Equal(t, scene.Write{At: first.At, Client: 2, Token: s.resource.Highest, Accepted: true}, first)
	assert.Equal(t, scene.Write{At: second.At, Client: 1, Token: second.Token, Accepted: false, Stale: true}, second)
	assert.Less(t, second.Token, s.resource.Highest)

	s = play(t, late)
	assert.Equal(t, []string{StaleWrite}, s.rules())
	assert.True(t, s.resource.Writes[1].Accepted)
	assert.Contains(t, s.violations[0].Remedy, "Fencing")
}

// A machine that sleeps believes in its lock for longer: its clock stood still.
func TestStageSuspends(t *testing.T) {
	const sleeps = "ttl=2s&do=100-acquire-c1,600-VERB-c1,900-acquire-c2,4000-continue-c1&until=5000"
	s := play(t, replace(sleeps, "VERB", "suspend"))
	assert.Equal(t, []string{history.Exclusion}, s.rules())
	assert.Contains(t, s.violations[0].Excused, "slept")
	s = play(t, replace(sleeps, "VERB", "pause"))
	assert.Empty(t, s.rules(), "its clock went on, so it knows")
	assert.Contains(t, s.kinds(1), history.Ended)
}

func TestStageClockJumps(t *testing.T) {
	const jumps = "do=100-acquire-c1,2000-VERB-m1-6000,2000-VERB-m2-6000,2000-VERB-m3-6000,2100-acquire-c2&until=4500"
	s := play(t, replace(jumps, "VERB", "ahead"))
	assert.Equal(t, []string{history.Exclusion}, s.rules())
	assert.Contains(t, s.violations[0].Excused, "clock was set forward")
	assert.Equal(t, 6*time.Second, s.masters[1].Jumped)
	s = play(t, replace(jumps, "VERB", "back"))
	assert.Empty(t, s.rules())
	assert.Equal(t, -6*time.Second, s.masters[3].Jumped)
}

// The naive semaphore lets three clients have one of two slots.
func TestStageSemaphore(t *testing.T) {
	const links = "do=0-cut-c1-m4,0-cut-c1-m5,0-cut-c2-m1,0-cut-c2-m2,0-cut-c3-m3,100-try-c1,100-try-c2,100-try-c3&until=2000"
	s := play(t, "slots=2&"+links)
	assert.Equal(t, []string{Semaphore}, s.rules())
	assert.Len(t, s.violations[0].Locks, 3)
	held := 0
	for _, m := range s.masters {
		assert.LessOrEqual(t, len(m.Keys), 2)
		held += len(m.Keys)
	}
	assert.Equal(t, 10, held, "all slots of all masters")

	s = play(t, "slots=2&do=100-try-c1,1000-try-c2,2000-try-c3,3000-release-c1,4000-try-c3&until=5000")
	assert.Empty(t, s.rules())
	assert.Equal(t, 1, s.count(3, history.Denied))
	assert.Equal(t, 1, s.count(3, history.Granted), "a slot was given back")
	s = play(t, "slots=1&ttl=1s&do=100-try-c1,2000-acquire-c2&until=4000")
	assert.Equal(t, 1, s.count(1, history.Ended), "its time was over")
	assert.Equal(t, 1, s.count(2, history.Granted))
}

// Votes split among clients that try at once. With the queue one of them gets the lock soon.
func TestStageSplitVote(t *testing.T) {
	const split = "do=0-slow-c1-m3-200,0-slow-c1-m4-200,0-slow-c1-m5-200,0-slow-c2-m1-200,0-slow-c2-m2-200,0-slow-c2-m5-200,0-slow-c3-m1-200,0-slow-c3-m2-200,0-slow-c3-m3-200,0-slow-c3-m4-200,1000-VERB-c1,1000-VERB-c2,1000-VERB-c3&timeout=1s"
	s := play(t, replace(split, "VERB", "try")+"&until=4000")
	assert.Zero(t, s.count(1, history.Granted)+s.count(2, history.Granted)+s.count(3, history.Granted))
	s = play(t, "fair=1&until=6000&"+replace(split, "VERB", "acquire"))
	assert.Equal(t, 1, s.count(1, history.Granted)+s.count(2, history.Granted)+s.count(3, history.Granted))
	queued := 0
	for _, m := range s.masters {
		for _, q := range m.Queues {
			queued = max(queued, len(q.Clients))
		}
	}
	assert.Equal(t, 2, queued)
	assert.Empty(t, s.rules())
}

func TestStageLinks(t *testing.T) {
	s := play(t, "do=100-cut-c1,200-try-c1,3000-heal-c1,3100-try-c1&until=4500")
	assert.Equal(t, 1, s.count(1, history.Denied))
	assert.Equal(t, 1, s.count(1, history.Granted))
	assert.Equal(t, scene.Link{Client: 1, Node: 5}, s.links[[2]int{1, 5}])
	s = play(t, "do=100-cutanswer-c1-m1,100-cutask-m2,100-lose-c1-m3,100-slow-c2-m4-700,200-acquire-c1&until=1500")
	assert.Equal(t, scene.Link{Client: 1, Node: 1, Answer: true}, s.links[[2]int{1, 1}])
	assert.Equal(t, scene.Link{Client: 3, Node: 2, Ask: true}, s.links[[2]int{3, 2}])
	assert.Equal(t, scene.Link{Client: 1, Node: 3, Loses: true}, s.links[[2]int{1, 3}])
	assert.Equal(t, scene.Link{Client: 2, Node: 4, Slow: 700 * time.Millisecond}, s.links[[2]int{2, 4}])
	lost := 0
	for _, m := range s.sent {
		if m.Lost {
			lost++
			assert.Equal(t, 3, m.Node)
			assert.Equal(t, "client", m.To)
		}
	}
	assert.NotZero(t, lost)
	assert.Empty(t, s.rules())
}

// A pause holds up what is sent to the client, but that is no fault of its links.
func TestStagePauses(t *testing.T) {
	s := play(t, "do=100-acquire-c1,1000-pause-c1,2000-continue-c1,2500-release-c1&until=4000")
	assert.Empty(t, s.links)
	assert.Equal(t, []history.Kind{history.Started, history.Asked, history.Granted, history.Paused, history.Resumed, history.Releasing, history.Ended, history.Released}, s.kinds(1))
}

func TestStageClientsDieAndStart(t *testing.T) {
	s := play(t, "ttl=2s&do=100-acquire-c1,1000-die-c1,1200-acquire-c2,1400-start-c1,2500-acquire-c1,4500-release-c2&until=6000")
	assert.Empty(t, s.rules())
	assert.Equal(t, 1, s.count(2, history.Granted))
	assert.Equal(t, 2, s.count(1, history.Granted), "the new process gets it in turn")
	ops := map[int]bool{}
	for _, e := range s.events {
		if e.Client == 1 && e.Kind == history.Granted {
			ops[e.Op] = true
		}
	}
	assert.Len(t, ops, 2, "operations of the new process have numbers of their own")
	assert.Equal(t, scene.Holding, s.clients[1].State)
}

func TestStageHolds(t *testing.T) {
	s := play(t, "ttl=2s&do=100-acquire-c1,1000-extend-c1,1500-keep-c1,2000-release-c2,2000-write-c2,2000-start-c1&until=5000")
	assert.Equal(t, scene.Holding, s.clients[1].State)
	assert.Equal(t, 1, s.count(1, history.Extended))
	assert.NotZero(t, s.count(1, history.Renewed))
	require.Len(t, s.clients[1].Locks, 1)
	assert.True(t, s.clients[1].Locks[0].Kept)
	assert.Greater(t, s.clients[1].Locks[0].Until, 5*time.Second)
	assert.Equal(t, "has no lock to write under", s.clients[2].Last)
	s = play(t, "do=100-acquire-c1,1000-acquire-c2,2000-giveup-c2&until=3000")
	assert.Equal(t, 1, s.count(2, history.Denied))
}

func TestStageHangs(t *testing.T) {
	s := play(t, "do=100-hang-m1,100-hang-m2,100-hang-m3,200-try-c1,2000-resume-m1,2000-resume-m2,2000-resume-m3,3000-try-c2&until=4500")
	assert.Equal(t, 1, s.count(1, history.Denied))
	assert.Equal(t, 1, s.count(2, history.Granted), "nothing was left behind")
	assert.False(t, s.masters[1].Hung)
	assert.Empty(t, s.rules())
}

// Clients that work by themselves take turns under drawn faults, and each message ends.
func TestStageDraws(t *testing.T) {
	for seed := range 4 {
		s := play(t, replace("seed=N&draw=1&fencing=1&fair=1&ttl=2s&until=20000", "N", string(rune('1'+seed))))
		assert.Empty(t, s.rules())
		granted := 0
		for client := 1; client <= 3; client++ {
			assert.NotZero(t, s.count(client, history.Granted))
			granted += s.count(client, history.Granted)
		}
		assert.Greater(t, granted, 6)
		assert.NotZero(t, s.resource.Highest)
		open := 0
		for _, m := range s.sent {
			if !m.Lost && !s.ended[m.ID] {
				open++
			}
		}
		assert.Less(t, open, 60)
	}
}

func TestStageWorksAndRests(t *testing.T) {
	s := play(t, "do=100-work-c1,6000-rest-c1&until=20000")
	assert.NotZero(t, s.count(1, history.Granted))
	assert.False(t, s.clients[1].Working)
	for _, e := range s.events {
		if e.Kind == history.Asked {
			assert.LessOrEqual(t, e.At, 6*time.Second)
		}
	}
}

func replace(s, old, new string) string { return strings.ReplaceAll(s, old, new) }
