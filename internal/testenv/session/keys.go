//go:build unix

package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quorumlock/redlock/internal/slot"
)

// asked parses a key and a number.
func asked(args []string) (key string, n int, err error) {
	if len(args) != 2 {
		return "", 0, errors.New("usage: KEY N")
	}
	n, err = strconv.Atoi(args[1])
	return args[0], n, err
}

func (s *Session) held(args []string) error {
	key, want, err := asked(args)
	if err != nil {
		return err
	}
	got := 0
	err = Eventually("", func() bool {
		got = 0
		for _, i := range s.answering() {
			got += int(s.Admin[i].Exists(context.Background(), key).Val())
		}
		return got == want
	})
	if err != nil {
		return fmt.Errorf("%d masters have %s, want %d", got, key, want)
	}
	return nil
}

// tickets is the lowest score of a waiter in a queue. Lower scores are the times of woken clients.
const tickets = "100000000000000"

func (s *Session) waiting(args []string) error {
	key, want, err := asked(args)
	if err != nil {
		return err
	}
	queue := slot.Sibling(slot.QueuePrefix, key)
	for _, i := range s.answering() {
		var got int64
		if Eventually("", func() bool {
			got, err = s.Admin[i].ZCount(context.Background(), queue, tickets, "+inf").Result()
			return err == nil && got == int64(want)
		}) != nil {
			return fmt.Errorf("master %d: %d wait for %s, want %d (%w)", i+1, got, key, want, err)
		}
	}
	return nil
}

func (s *Session) forget(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: forget KEY I…")
	}
	return s.OnEach(args[1:], func(i int) error { return s.Admin[i].Del(context.Background(), args[0]).Err() })
}

func (s *Session) tell(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: tell I COMMAND…")
	}
	which := s.answering()
	if args[0] != "all" {
		var err error
		if which, err = s.numbers(args[:1]); err != nil {
			return err
		}
	}
	var command []any
	for _, a := range args[1:] {
		command = append(command, a)
	}
	for _, i := range which {
		if err := s.Admin[i].Do(context.Background(), command...).Err(); err != nil {
			return fmt.Errorf("master %d: %w", i+1, err)
		}
	}
	return nil
}

// nothing ignores fences, which outlive their locks for days, and the identity record of a master
// that a guard watches. A key that has expired was left behind.
func (s *Session) nothing(args []string) error {
	mayExpire := slices.Equal(args, []string{"-expired"})
	if len(args) != 0 && !mayExpire {
		return errors.New("usage: nothing [-expired]")
	}
	for _, i := range s.answering() {
		var left []string
		if Eventually("", func() bool {
			left = nil
			keys, err := s.Admin[i].Keys(context.Background(), "*").Result()
			for _, k := range keys {
				if !strings.HasPrefix(k, slot.FencePrefix) && k != "redlock:server" {
					left = append(left, k)
				}
			}
			return err == nil && len(left) == 0
		}) != nil {
			return fmt.Errorf("master %d has %q", i+1, left)
		}
		stats, err := s.Admin[i].InfoMap(context.Background(), "stats").Result()
		if err != nil {
			return err
		}
		if n := stats["Stats"]["expired_keys"]; n != "0" && !mayExpire {
			return fmt.Errorf("master %d has seen %s keys expire", i+1, n)
		}
	}
	return nil
}
