package conn

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// calls returns n calls of an operation, as a lane hands them to its connection.
func calls(t *testing.T, n int, op protocol.Operation) (batch []*call) {
	g := quorum.NewGroup([]quorum.Transport[protocol.Operation]{take{&batch}}, clock.System(), 200*time.Millisecond)
	for range n {
		g.Start(quorum.Spec[protocol.Operation]{Op: op}).Wait(t.Context())
	}
	g.Close(0)
	return batch
}

// take is a transport that only records its calls.
type take struct{ calls *[]*call }

func (c take) Carry(_ context.Context, batch []*call) {
	*c.calls = append(*c.calls, batch...)
	for _, one := range batch {
		one.Fail(errors.New("taken"))
	}
}

func (take) Rest() {}

// A command that is used again has nothing of its last use, neither arguments nor a
// reply that could be taken for this one's: after a failed handshake go-redis leaves
// every command as it was.
func TestCommandIsReusedAsNew(t *testing.T) {
	var w wire
	set := calls(t, 1, protocol.Operation{Kind: protocol.Acquire, NodeKey: "one", Value: "mine", TTL: int64(10)})
	release := calls(t, 1, protocol.Operation{Kind: protocol.Release, NodeKey: "one", Value: "mine", Queue: protocol.QueueOf("one")})
	extend := calls(t, 1, protocol.Operation{Kind: protocol.Extend, NodeKey: "one", Value: "mine", TTL: int64(10)})
	w.encode(append(release, extend...), clock.System()) // the first calls carry the whole scripts

	batch := append(append(set, release...), extend...)
	w.reset()
	w.encode(batch, clock.System())
	first := append([]*wireCmd(nil), w.cmds...)
	copy(w.cmds[0].buf[:], "OK")
	w.cmds[0].text.SetVal(2)
	for _, cmd := range w.cmds[1:] {
		cmd.number.SetVal(int64(1))
	}
	for _, cmd := range w.cmds {
		cmd.SetErr(errors.New("an error"))
		for i := range cmd.Args() {
			cmd.Args()[i] = "a hook's"
		}
	}

	w.reset()
	for _, cmd := range first {
		assert.Empty(t, cmd.value)
		for _, a := range cmd.Args() {
			assert.Nil(t, a, "an idle command holds on to nothing")
		}
	}

	w.reset()
	w.encode(batch, clock.System())
	assert.ElementsMatch(t, first, w.cmds)
	for i, cmd := range w.cmds {
		assert.NoError(t, cmd.Err())
		assert.NotContains(t, cmd.Args(), "a hook's")
		assert.Contains(t, cmd.Args(), any("one"))
		assert.Equal(t, "mine", cmd.value)
		c := batch[i]
		_, ok := cmd.decode(c.Op(), nil)
		assert.False(t, ok, "no reply is no answer")
	}
	assert.Equal(t, []any{"set", "one", &w.cmds[0].value, "nx", "px", int64(10)}, w.cmds[0].Args())
}

// However many batches a connection carries, it keeps as many commands as the
// largest had.
func TestConnectionKeepsNoMoreCommandsThanABatchHad(t *testing.T) {
	var w wire
	batch := calls(t, 3, protocol.Operation{Kind: protocol.Acquire, NodeKey: "one", Value: "mine", TTL: int64(10)})
	for range 100 {
		w.reset()
		w.encode(batch, clock.System())
		w.reset()
	}
	assert.Len(t, w.sets.made, 3)
}
