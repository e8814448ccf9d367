package scene

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/lab/history"
)

func TestEncode(t *testing.T) {
	line, err := Encode(3*time.Millisecond, Arrived{ID: 7})
	require.NoError(t, err)
	assert.Equal(t, `{"at":3000000,"kind":"arrived","id":7}`+"\n", string(line))
	for _, l := range []Line{Begin{}, Error{}, Master{}, Client{}, Link{}, Sent{}, Arrived{}, Gone{}, Resource{}, Event{}, Violation{}, Over{}} {
		line, err := Encode(1, l)
		require.NoError(t, err)
		var head struct {
			At   int
			Kind string
		}
		require.NoError(t, json.Unmarshal(line, &head))
		assert.Equal(t, 1, head.At)
		assert.Equal(t, l.kind(), head.Kind)
	}
}

// A client's state follows the events and the votes of its operations.
func TestClients(t *testing.T) {
	c := NewClients(2, 3, 2)
	saw := func(e history.Event) Client {
		e.Client = 1
		assert.True(t, c.Saw(e))
		return c.Client(1)
	}
	vote := func(node int, verb, vote string) (Client, bool) {
		used := c.Voted(1, node, verb, vote)
		return c.Client(1), used
	}
	assert.False(t, c.Saw(history.Event{Kind: history.Voted, Client: 1, Node: 2}), "that is the master's")
	assert.False(t, c.Saw(history.Event{Kind: history.Fault}))
	assert.Equal(t, Idle, c.Client(1).State)
	_, used := vote(1, "acquire", "granted")
	assert.False(t, used, "it has asked for nothing")

	s := saw(history.Event{Kind: history.Asked, Op: 1, Key: "k"})
	assert.Equal(t, Asking, s.State)
	assert.Equal(t, &Ballot{Op: 1, Key: "k", Verb: "acquire", Votes: []string{"", "", ""}, Need: 2}, s.Asking)
	_, used = vote(1, "release", "granted")
	assert.False(t, used, "that is of another operation")
	s, _ = vote(1, "acquire", "refused")
	assert.Equal(t, Asking, s.State, "two of three can still grant")
	s, _ = vote(2, "acquire", "failed")
	assert.Equal(t, Waiting, s.State)
	s, used = vote(1, "acquire", "granted")
	assert.True(t, used)
	assert.Equal(t, []string{"granted", "", ""}, s.Asking.Votes, "a second vote of a master begins a round")
	assert.Equal(t, 1, s.Asking.Granted)
	assert.Equal(t, Waiting, s.State)

	s = saw(history.Event{Kind: history.Granted, At: 5, Op: 1, Key: "k", Until: 9, Token: 3})
	assert.Equal(t, Holding, s.State)
	assert.Nil(t, s.Asking)
	assert.Equal(t, []Lock{{Op: 1, Key: "k", Since: 5, Until: 9, Token: 3, Context: "alive"}}, s.Locks)
	assert.Equal(t, Extending, saw(history.Event{Kind: history.Extending, Op: 1}).State)
	s = saw(history.Event{Kind: history.Extended, Op: 1, Until: 12})
	assert.Equal(t, time.Duration(12), s.Locks[0].Until)
	assert.Equal(t, time.Duration(15), saw(history.Event{Kind: history.Renewed, Op: 1, Until: 15}).Locks[0].Until)
	s = saw(history.Event{Kind: history.NotExtended, Op: 1, Err: "no quorum"})
	assert.Equal(t, "not extended: no quorum", s.Last)
	assert.True(t, saw(history.Event{Kind: history.Paused}).Paused)
	assert.False(t, saw(history.Event{Kind: history.Resumed}).Paused)

	s = saw(history.Event{Kind: history.Ended, Op: 1, Err: "expired"})
	assert.Equal(t, "done: expired", s.Locks[0].Context)
	assert.Equal(t, Idle, s.State, "a lock that has ended is not held")
	s = saw(history.Event{Kind: history.Asked, Op: 2})
	assert.Empty(t, s.Locks)
	s = saw(history.Event{Kind: history.Denied, Op: 2, Err: "held"})
	assert.Equal(t, "held", s.Last)
	saw(history.Event{Kind: history.Granted, Op: 3})
	assert.Equal(t, Releasing, saw(history.Event{Kind: history.Releasing, Op: 3}).State)
	s = saw(history.Event{Kind: history.Released, Op: 3, Err: "no quorum"})
	assert.Equal(t, "released: no quorum", s.Last)
	assert.Empty(t, s.Locks)

	saw(history.Event{Kind: history.Granted, Op: 4})
	s = saw(history.Event{Kind: history.Died})
	assert.Equal(t, Dead, s.State)
	assert.Empty(t, s.Locks)
	s = saw(history.Event{Kind: history.Started})
	assert.Equal(t, Idle, s.State)
	assert.Equal(t, Idle, c.Client(2).State)
}

// What a caller got does not change later.
func TestClientIsACopy(t *testing.T) {
	c := NewClients(1, 1, 1)
	c.Saw(history.Event{Kind: history.Granted, Client: 1, Op: 1, Until: 1})
	c.Saw(history.Event{Kind: history.Extending, Client: 1, Op: 1})
	before := c.Client(1)
	c.Voted(1, 1, "extend", "granted")
	c.Saw(history.Event{Kind: history.Extended, Client: 1, Op: 1, Until: 2})
	assert.Equal(t, time.Duration(1), before.Locks[0].Until)
	assert.Equal(t, []string{""}, before.Asking.Votes)
	c.Set(1, func(s *Client) { s.Working = true })
	assert.True(t, c.Client(1).Working)
	assert.False(t, before.Working)
}
