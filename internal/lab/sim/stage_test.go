package sim

import (
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
