package redlock

import (
	"math"
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
		"too short":            []any{"value", int64(1), int64(0), int64(0)},
		"too long":             []any{"value", int64(1), int64(0), int64(0), int64(0), "", ""},
		"expiry is text":       []any{"value", "1", int64(0), int64(0), ""},
		"expiry is no answer":  []any{"value", int64(-2), int64(0), int64(0), ""},
		"queue is nil":         []any{"value", int64(1), nil, int64(0), ""},
		"queue is negative":    []any{"value", int64(1), int64(-2), int64(0), ""},
		"fence is a float":     []any{"value", int64(1), int64(0), 1.5, ""},
		"fence is negative":    []any{"value", int64(1), int64(0), int64(-2), ""},
		"value is a list":      []any{[]any{"value"}, int64(1), int64(0), int64(0), ""},
		"value is a truth":     []any{true, int64(1), int64(0), int64(0), ""},
		"type is a number":     []any{int64(1), int64(1), int64(0), int64(0), int64(0)},
		"value is some number": []any{int64(7), int64(1), int64(0), int64(0), ""},
	} {
		n, err := readInspection(reply)
		assert.ErrorIs(t, err, errGarbled, name)
		assert.Equal(t, NodeInspection{}, n, name)
	}
	for kind, want := range map[string]string{
		"hash":      "has a hash under this key, which is not a lock",
		"":          "has something of another type under this key, which is not a lock",
		"MBbloom--": "has something of a module's type under this key, which is not a lock",
		"\x1b[2J":   "has something of a module's type under this key, which is not a lock",
	} {
		n, err := readInspection([]any{int64(1), int64(-1), int64(3), int64(7), kind})
		assert.ErrorIs(t, err, ErrForeign)
		assert.EqualError(t, err, want)
		assert.Equal(t, NodeInspection{}, n)
	}

	n, err := readInspection([]any{nil, int64(0), int64(3), int64(7), ""})
	assert.NoError(t, err)
	assert.Equal(t, NodeInspection{Waiting: 3, Fence: 7}, n)

	n, err = readInspection([]any{"", int64(-1), int64(-1), int64(-1), ""})
	assert.NoError(t, err)
	assert.Equal(t, "e3b0c442", n.Holder, "SHA-256 of nothing")
	assert.Equal(t, -time.Millisecond, n.TTL)

	for ms, want := range map[int64]time.Duration{
		math.MaxInt64 / 1000000:   math.MaxInt64 / 1000000 * time.Millisecond,
		math.MaxInt64/1000000 + 1: math.MaxInt64,
		300 * 365 * 24 * 3600e3:   math.MaxInt64,
		math.MaxInt64:             math.MaxInt64,
	} {
		n, err = readInspection([]any{"value", ms, int64(0), int64(0), ""})
		assert.NoError(t, err)
		assert.Equal(t, want, n.TTL, "a key that lives for longer than a Duration can tell")
	}
}
