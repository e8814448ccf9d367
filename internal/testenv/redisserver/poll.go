package redisserver

import (
	"errors"
	"time"
)

// final marks an error that a retry cannot cure.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// poll tries a condition now and at every tick until it holds, for limit at most, and returns
// the last error. It is for conditions that a server does not announce by an event.
func poll(limit, tick time.Duration, condition func() error) error {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		err := condition()
		var f final
		if err == nil {
			return nil
		}
		if errors.As(err, &f) {
			return f.error
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			return err
		}
	}
}
