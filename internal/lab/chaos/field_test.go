//go:build linux

package chaos

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/testenv/redisserver"
)

// field holds the masters, the clients, and the wires between them.
type field struct {
	*testing.T
	clock   trueTime
	log     history.Log
	seed    uint64
	terms   terms
	masters []*master
	seats   []*seat
	clients atomic.Int64 // numbers given so far
}

// A master loses nothing that it has answered, however it ends.
type master struct {
	*redisserver.Server
	admin *redis.Client
	busy  sync.Mutex // locked during a fault
}

// A seat is a place for a client. When the client dies, the next one takes the place, and
// finds on its wires what the dead client left there.
type seat struct {
	wires  []*wire // to each master
	busy   sync.Mutex
	member *member      // guarded by busy
	number atomic.Int64 // of the client, for the record
}

// A wire is the only connection from one client to one master.
type wire struct {
	*redisserver.Link
	busy sync.Mutex
}

// newField starts the masters; the seats are empty.
func newField(t *testing.T, masters, seats int, seed uint64, terms terms) *field {
	t.Helper()
	f := &field{T: t, clock: trueTime{monotonic()}, seed: seed, terms: terms}
	for range seats {
		f.seats = append(f.seats, &seat{})
	}
	for _, s := range redisserver.Start(t, masters, redisserver.Config(
		// Data that a killed process has written to a file is not lost. The sync is what an
		// operator has to configure, with its real cost.
		"appendonly yes", "appendfsync always", "auto-aof-rewrite-percentage 0",
	)) {
		f.masters = append(f.masters, &master{Server: s, admin: s.Client(patient)})
		for _, seat := range f.seats {
			seat.wires = append(seat.wires, &wire{Link: redisserver.NewLink(t, s.Addr())})
		}
	}
	return f
}

// patient is for masters that are slow but not dead.
func patient(o *redis.Options) {
	o.MaxRetries = -1
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = hang, hang, hang
}

// seatClient starts a client in the seat, which must be empty. The client ends with the test.
func (f *field) seatClient(s *seat, hold time.Duration) error {
	number := int(f.clients.Add(1))
	config := clientConfig{
		Client: number, Epoch: f.clock.epoch, Seed: f.seed, Hold: hold,
		Keys: f.terms.keys, Fencing: f.terms.fencing, Guard: f.terms.guard, Ahead: f.terms.ahead(f.seed, number),
	}
	for _, w := range s.wires {
		config.URLs = append(config.URLs, "redis://"+w.Addr())
	}
	m, err := startMember(config, f.log.Add)
	if err != nil {
		return err
	}
	f.Cleanup(func() { _ = m.kill() })
	s.member = m
	s.number.Store(int64(m.number))
	return nil
}

// settle lets all clients finish by themselves.
func (f *field) settle() {
	var g sync.WaitGroup
	for _, s := range f.seats {
		if s.member != nil {
			g.Go(func() {
				if err := s.member.settle(); err != nil {
					f.Error(err)
				}
			})
		}
	}
	g.Wait()
}

// fault records a fault that began at begun and is over now.
func (f *field) fault(text string, begun time.Duration, client, node int) {
	f.log.Add(history.Event{At: begun, Kind: history.Fault, Until: f.clock.now(), Client: client, Node: node, Text: text})
}

// await returns when the client, or any client if it is 0, has recorded such an event.
func (f *field) await(kind history.Kind, client int) {
	f.Helper()
	recorded := func() bool {
		return slices.ContainsFunc(f.log.Events(), func(e history.Event) bool {
			return e.Kind == kind && (client == 0 || e.Client == client)
		})
	}
	require.Eventually(f, recorded, hang, 5*time.Millisecond, "client %d: never %s", client, kind)
}

// wipe deletes a dead master's memory.
func (m *master) wipe() error { return os.RemoveAll(filepath.Join(m.Dir(), "appendonlydir")) }

// forgotten starts a dead master without its memory.
func (m *master) forgotten() error {
	if err := m.wipe(); err != nil {
		return err
	}
	return m.Restart()
}

// expectEmpty waits until the masters have only keys that are there to stay. All keys of locks
// have a ttl, so they disappear by themselves.
func (f *field) expectEmpty() {
	f.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), hang, errors.New("keys are left"))
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i, m := range f.masters {
		for {
			// DBSIZE would count expired keys that no command has read.
			left, err := m.admin.Keys(ctx, "*").Result()
			left = slices.DeleteFunc(left, f.terms.keeps)
			if err == nil && len(left) == 0 {
				break
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				f.Errorf("node %d: keys outlive everybody: %v %v", i+1, left, err)
				return
			}
		}
	}
}
