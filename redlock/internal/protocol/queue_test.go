package protocol

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseQueueReply(t *testing.T) {
	six := func(n ...int64) (reply []any) {
		for _, i := range n {
			reply = append(reply, i)
		}
		return reply
	}
	got, ok := parseQueueReply(six(4, -1, 2, 3, 5, 7))
	assert.True(t, ok)
	assert.Equal(t, QueueReply{State: StateAhead, Changes: -1, Ahead: 2, Tail: 3, Fence: 5, Holder: 7}, got)
	for _, reply := range []any{
		nil, int64(1), "1", []any{}, six(1, 0, 0, 0, 0), six(1, 0, 0, 0, 0, 0, 0),
		six(-1, 0, 0, 0, 0, 0), six(5, 0, 0, 0, 0, 0), six(0, 0, -1, 0, 0, 0), six(0, 0, 0, 0, -1, 0),
		[]any{int64(1), int64(0), "0", int64(0), int64(0), int64(0)}, []any{int64(1), nil, int64(0), int64(0), int64(0), int64(0)},
		[]any{int64(1), int64(0), int64(0), int64(0), 0.0, int64(0)},
	} {
		_, ok := parseQueueReply(reply)
		assert.False(t, ok, "%v", reply)
	}
}
