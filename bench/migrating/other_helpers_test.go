package migrating_test

import (
	"context"
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// errRefused is what an other returns if its library reports that another client has the key.
var errRefused = errors.New("refused")

// other is a client of another library, or of this one. It makes one attempt to lock key for ttl. If
// another client has the key, the error matches errRefused.
type other func(ctx context.Context, key string) (release func(context.Context) error, err error)

// us makes an other of this library.
func us(r *redlock.Redlock) other {
	return func(ctx context.Context, key string) (func(context.Context) error, error) {
		l, err := r.TryAcquire(ctx, key, ttl)
		if errors.Is(err, redlock.ErrHeld) {
			return nil, errRefused
		}
		if err != nil {
			return nil, err
		}
		return l.Release, nil
	}
}

// lock locks the key, which must be free.
func (o other) lock(m *masters, key string) (release func()) {
	m.Helper()
	give, err := o(m.ctx, key)
	require.NoError(m, err)
	return func() {
		m.Helper()
		require.NoError(m, give(m.ctx), "the key is no longer theirs")
	}
}

// refused tries to lock the key, which another client must have.
func (o other) refused(m *masters, key string) {
	m.Helper()
	_, err := o(m.ctx, key)
	require.ErrorIs(m, err, errRefused)
}
