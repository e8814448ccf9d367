package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// subject is one thing that is measured, and how long it took in each turn.
type subject struct {
	name string
	run  func() error
	took []time.Duration
}

// take measures everything once in each turn. Each turn begins with another subject, so that
// none always follows the same load. A turn before the first fills caches and is not counted.
func take(ctx context.Context, subjects []*subject, turns int) error {
	for turn := range turns + 1 {
		for i := range subjects {
			if err := ctx.Err(); err != nil {
				return err
			}
			s := subjects[(turn+i)%len(subjects)]
			start := time.Now()
			if err := s.run(); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if turn > 0 {
				s.took = append(s.took, time.Since(start))
			}
		}
	}
	return nil
}

// quantile returns the q-quantile of the times. There must be at least one.
func (s *subject) quantile(q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(s.took))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

func (s *subject) median() time.Duration { return s.quantile(0.5) }
