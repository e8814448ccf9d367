package masters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrLeft reports keys where there should be none.
var ErrLeft = errors.New("keys are left")

// AwaitEmpty returns when none of the masters has a key. If keys are left after patience, it
// returns an error that matches ErrLeft and reports their number and one of them. patience
// should be shorter than every ttl, so that keys do not just expire.
func (s *Set) AwaitEmpty(ctx context.Context, patience time.Duration) error {
	return s.AwaitOnly(ctx, nil, patience)
}

// AwaitOnly is like AwaitEmpty, but ignores keys that begin with one of stays.
func (s *Set) AwaitOnly(ctx context.Context, stays []string, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		counts, err := s.left(ctx, stays)
		if err != nil {
			return err
		}
		if sum(counts) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w on the masters: %v, such as %s", ErrLeft, counts, s.oneKey(ctx, stays))
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// left counts the keys of each master, except for those that may stay.
func (s *Set) left(ctx context.Context, stays []string) ([]int64, error) {
	if len(stays) == 0 {
		return s.Keys(ctx, s.Size())
	}
	counts := make([]int64, s.Size())
	for i, c := range s.clients {
		keys, err := c.Keys(ctx, "*").Result()
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			if !begins(key, stays) {
				counts[i]++
			}
		}
	}
	return counts, nil
}

// oneKey returns a key that a master has and that may not stay.
func (s *Set) oneKey(ctx context.Context, stays []string) string {
	for _, c := range s.clients {
		for _, key := range c.Keys(ctx, "*").Val() {
			if !begins(key, stays) {
				return key
			}
		}
	}
	return "none any more"
}

func begins(key string, with []string) bool {
	return slices.ContainsFunc(with, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

func sum(counts []int64) (total int64) {
	for _, n := range counts {
		total += n
	}
	return total
}
