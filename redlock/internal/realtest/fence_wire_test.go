package realtest_test

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// exchanges is a hook that records the commands of each finished round trip.
type exchanges struct {
	mu  sync.Mutex
	all []string
}

func (e *exchanges) add(cmds ...redis.Cmder) {
	var names []string
	for _, cmd := range cmds {
		name := cmd.Name()
		if name == "hello" || name == "client" {
			return // a handshake
		}
		if name == "info" {
			name += " " + cmd.Args()[1].(string)
		}
		names = append(names, name)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, strings.Join(names, ", "))
}

// taken returns the exchanges since its last call.
func (e *exchanges) taken() (all []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all, e.all = e.all, nil
	return all
}

// had returns how many commands of a name there were since the last call of taken.
func (e *exchanges) had(name string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, names := range e.all {
		for _, one := range strings.Split(names, ", ") {
			if one == name {
				n++
			}
		}
	}
	return n
}

func (e *exchanges) DialHook(next redis.DialHook) redis.DialHook { return next }

func (e *exchanges) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		defer e.add(cmd)
		return next(ctx, cmd)
	}
}

func (e *exchanges) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		defer e.add(cmds...)
		return next(ctx, cmds)
	}
}

// An acquisition is one exchange with each node, and one command: SET, or with fencing a script.
// The question for the server's identity is in the same batch.
func TestRealAcquireIsOneExchange(t *testing.T) {
	for way, cfg := range eachWay {
		t.Run(way, func(t *testing.T) {
			f := startFleet(t, 3)
			clients := f.clients()
			var nodes []*exchanges
			for _, c := range clients {
				e := &exchanges{}
				c.AddHook(e)
				nodes = append(nodes, e)
			}
			verb, asked := "set", "info server, "
			if cfg.Fencing {
				verb = "eval"
			}
			if cfg.RestartGuard > 0 {
				cfg.RestartGuard = realGuard
				asked += "info replication"
			}
			r := f.redlockOf(clients, cfg)
			f.counted(r, "warm up")
			for _, e := range nodes {
				first := e.taken()[0] // on a new connection
				assert.True(t, strings.HasPrefix(first, asked), first)
				assert.True(t, strings.HasSuffix(first, ", "+verb), first)
			}
			if cfg.Fencing {
				verb = "evalsha"
			}
			monitors := f.watch()
			for _, key := range []string{"first", "second", "third"} {
				f.settled(r, monitors, nodes)
				l := f.acquire(r, key, realGuard)
				f.round("acquire", key)
				for i, e := range nodes {
					took := e.taken()
					require.Len(t, took, 1)
					if cfg.RestartGuard == 0 {
						assert.Equal(t, verb, took[0])
					}
					var sent []string
					for _, command := range monitors[i].sent() {
						if cfg.RestartGuard == 0 || strings.Contains(command, quoted(key)) { // the guard asks
							sent = append(sent, strings.ToLower(command))
						}
					}
					require.Len(t, sent, 1)
					want := quoted("set", key, l.Value(), "nx", "px", realGuard.Milliseconds())
					if cfg.Fencing {
						retention := 7 * 24 * time.Hour
						want = quoted(2, key, "redlock:fence:{"+key+"}",
							l.Value(), realGuard.Milliseconds(), l.FencingToken(), retention.Milliseconds(), "0")
						assert.Regexp(t, `^"evalsha" "[0-9a-f]{40}" `+regexp.QuoteMeta(want)+`$`, sent[0])
					} else {
						assert.Equal(t, want, sent[0])
					}
				}
			}
		})
	}
}

// settled waits until nothing is under way, and drops all records: a release comes after everything
// else on every lane.
func (f *fleet) settled(r *redlock.Redlock, monitors []*monitor, nodes []*exchanges) {
	f.Helper()
	asked := len(f.rounds.of("acquire", "behind"))
	l := f.acquire(r, "behind", realGuard)
	f.eventually("all lanes have it", func() bool { return len(f.rounds.of("acquire", "behind")) > asked })
	released := len(f.rounds.of("release", "behind"))
	require.NoError(f, f.release(l))
	f.eventually("it is released", func() bool { return len(f.rounds.of("release", "behind")) > released })
	for i := range nodes {
		nodes[i].taken()
		monitors[i].sent()
	}
}
