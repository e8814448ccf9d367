package redlock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// What a node says is input: only what inspect.lua can say is taken for an answer.
func TestReadInspection(t *testing.T) {
	for name, reply := range map[string]any{
		"nothing":              nil,
		"no list":              "value",
		"empty":                []any{},
		"too short":            []any{"value", int64(1), int64(0)},
		"too long":             []any{"value", int64(1), int64(0), int64(0), int64(0)},
		"expiry is text":       []any{"value", "1", int64(0), int64(0)},
		"expiry is no answer":  []any{"value", int64(-2), int64(0), int64(0)},
		"queue is nil":         []any{"value", int64(1), nil, int64(0)},
		"queue is negative":    []any{"value", int64(1), int64(-2), int64(0)},
		"fence is a float":     []any{"value", int64(1), int64(0), 1.5},
		"fence is negative":    []any{"value", int64(1), int64(0), int64(-2)},
		"value is a list":      []any{[]any{"value"}, int64(1), int64(0), int64(0)},
		"value is a truth":     []any{true, int64(1), int64(0), int64(0)},
		"value is some number": []any{int64(7), int64(1), int64(0), int64(0)},
	} {
		n, err := readInspection(reply)
		assert.ErrorIs(t, err, errGarbled, name)
		assert.Equal(t, NodeInspection{}, n, name)
	}
	n, err := readInspection([]any{int64(1), int64(-1), int64(3), int64(7)})
	assert.ErrorIs(t, err, errOtherType)
	assert.Equal(t, NodeInspection{}, n)

	n, err = readInspection([]any{nil, int64(0), int64(3), int64(7)})
	assert.NoError(t, err)
	assert.Equal(t, NodeInspection{Waiting: 3, Fence: 7}, n)

	n, err = readInspection([]any{"", int64(-1), int64(-1), int64(-1)})
	assert.NoError(t, err)
	assert.Equal(t, "e3b0c442", n.Holder, "SHA-256 of nothing")
	assert.Equal(t, -time.Millisecond, n.TTL)
}
