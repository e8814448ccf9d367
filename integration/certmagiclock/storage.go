package certmagiclock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/quorumlock/redlock/redlock"
)

// Wrap returns storage with the locks of a new Locker in place of its own. All instances that share
// the storage must lock on the same masters.
func Wrap(storage certmagic.Storage, locks *redlock.Redlock, ttl time.Duration) (certmagic.Storage, error) {
	if storage == nil {
		return nil, errors.New("certmagiclock: storage is nil")
	}
	locker, err := New(locks, ttl)
	if err != nil {
		return nil, err
	}
	return wrapper{storage, locker}, nil
}

// wrapper has the methods of a storage and of a Locker, and for those that both have the Locker's.
type wrapper struct {
	certmagic.Storage
	*Locker
}

func (w wrapper) Lock(ctx context.Context, key string) error   { return w.Locker.Lock(ctx, key) }
func (w wrapper) Unlock(ctx context.Context, key string) error { return w.Locker.Unlock(ctx, key) }

// String is the storage's own, for certmagic's log.
func (w wrapper) String() string { return fmt.Sprint(w.Storage) }
