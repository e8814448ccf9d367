package protocol

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/redlock/internal/errs"
)

// A node's reply is input: only a reply that inspect.lua can give is accepted.
func TestDecodeInspection(t *testing.T) {
	op := Operation{Kind: Inspect}
	decode := func(reply any) (Reply, bool) { return op.Decode(&script.Inspect, reply, nil) }
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
		_, ok := decode(reply)
		assert.False(t, ok, name)
	}
	for kind, want := range map[string]string{
		"hash":      "has a hash under this key, which is not a lock",
		"":          "has something of another type under this key, which is not a lock",
		"MBbloom--": "has something of a module's type under this key, which is not a lock",
		"\x1b[2J":   "has something of a module's type under this key, which is not a lock",
	} {
		r, ok := decode([]any{int64(1), int64(-1), int64(3), int64(7), kind})
		assert.True(t, ok)
		assert.ErrorIs(t, r.Err, errs.Foreign)
		assert.EqualError(t, r.Err, want)
		assert.Nil(t, r.Seen)
	}

	r, ok := decode([]any{nil, int64(0), int64(3), int64(7), ""})
	assert.True(t, ok)
	assert.Equal(t, &Seen{Waiting: 3, Fence: 7}, r.Seen)

	r, ok = decode([]any{"", int64(-1), int64(-1), int64(-1), ""})
	assert.True(t, ok)
	assert.Equal(t, "", *r.Seen.Value)
	assert.Equal(t, -time.Millisecond, r.Seen.TTL)

	for ms, want := range map[int64]time.Duration{
		math.MaxInt64 / 1000000:   math.MaxInt64 / 1000000 * time.Millisecond,
		math.MaxInt64/1000000 + 1: math.MaxInt64,
		300 * 365 * 24 * 3600e3:   math.MaxInt64,
		math.MaxInt64:             math.MaxInt64,
	} {
		r, ok = decode([]any{"value", ms, int64(0), int64(0), ""})
		assert.True(t, ok)
		assert.Equal(t, want, r.Seen.TTL, "a key that lives for longer than a Duration can hold")
	}
}
