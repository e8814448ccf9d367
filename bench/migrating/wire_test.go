package migrating_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// held is a lock on "key" of some library.
type held struct {
	value   string // what the masters store, if it is a string
	extend  func()
	release func()
}

// wires lists the libraries in the order of the table in docs/migrating.md, and how each takes a lock
// on "key" for ttl.
var wires = []struct {
	library string
	take    func(*masters) held
	value   string // a pattern
}{
	{"redlock", func(m *masters) held { return takeOurs(m, redlock.Config{Owner: "web-3"}) }, ours},
	{"redlock with `Fencing`", func(m *masters) held { return takeOurs(m, redlock.Config{Owner: "web-3", Fencing: true}) }, ours},
	{"redsync", takeRedsync, `^[\w+/]{22}==$`},
	{"redislock", takeRedislock, `^[\w-]{22}$`},
	{"rueidislock, each key", takeRueidislock, `(?s)^.{24}$`},
	{"Redisson `RLock`", takeRLock, `^$`},
	{"node-redlock", takeNodeRedlock, `^value$`},
}

// ours is a UUID, the second of the acquisition, and the owner.
const ours = `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12} [0-9]{10} web-3$`

func takeOurs(m *masters, cfg redlock.Config) held {
	r := m.ours(cfg)
	l, err := r.TryAcquire(m.ctx, "key", ttl)
	require.NoError(m, err)
	return held{l.Value(),
		// A ttl below what remains changes nothing.
		func() { require.NoError(m, l.Extend(m.ctx, 2*ttl)) },
		func() { require.NoError(m, l.Release(m.ctx)) }}
}

func takeRedsync(m *masters) held {
	mutex := m.redsync().NewMutex("key", redsync.WithExpiry(ttl))
	require.NoError(m, mutex.Lock())
	return held{mutex.Value(),
		func() { _, err := mutex.Extend(); require.NoError(m, err) },
		func() { _, err := mutex.Unlock(); require.NoError(m, err) }}
}

func takeRedislock(m *masters) held {
	l, err := redislock.Obtain(m.ctx, m.servers[0].Client(), "key", ttl, nil)
	require.NoError(m, err)
	return held{l.Token(),
		func() { require.NoError(m, l.Refresh(m.ctx, ttl, nil)) },
		func() { require.NoError(m, l.Release(m.ctx)) }}
}

func takeRueidislock(m *masters) held {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{m.servers[0].Addr()}, ForceSingleClient: true},
		KeyMajority:    1,
		KeyValidity:    ttl,
		ExtendInterval: 50 * time.Millisecond,
		TryNextAfter:   time.Minute,
		NoLoopTracking: true,
	})
	require.NoError(m, err)
	m.Cleanup(l.Close)
	_, release, err := l.TryWithContext(m.ctx, "key")
	require.NoError(m, err)
	return held{m.admin[0].Get(m.ctx, oneRueidisKey+"key").Val(),
		func() {
			m.eventually(func() bool {
				return slices.ContainsFunc(m.commands(), func(c []string) bool { return c[0] == "PEXPIREAT" })
			}, "it is to extend by itself")
		}, release}
}

func takeRLock(m *masters) held {
	r := rLock{m.servers[0].Client(), "thread"}
	require.NoError(m, r.tryLock(m.ctx, "key"))
	return held{"",
		func() { _, err := r.renew(m.ctx, "key"); require.NoError(m, err) },
		func() { require.NoError(m, r.unlock(m.ctx, "key")) }}
}

func takeNodeRedlock(m *masters) held {
	n := m.nodeRedlock()
	require.NoError(m, n.acquire([]string{"key"}, "value", ttl))
	return held{"value",
		func() { require.NoError(m, n.extend([]string{"key"}, "value", ttl)) },
		func() { require.NoError(m, n.release([]string{"key"}, "value")) }}
}

// Each row of the table in docs/migrating.md has the commands that a master gets.
func TestWireTableIsWhatMastersGet(t *testing.T) {
	doc, err := os.ReadFile("../../docs/migrating.md")
	require.NoError(t, err)
	for _, w := range wires {
		t.Run(w.library, func(t *testing.T) {
			m := startMasters(t, 1)
			warm := w.take(m) // the masters learn the scripts
			warm.release()
			var row []string
			cell := func() {
				row = append(row, strings.Join(words(m.commands()), ", "))
				m.record()
			}
			m.record()
			lock := w.take(m)
			cell()
			assert.Regexp(t, w.value, latin1(lock.value))
			lock.extend()
			cell()
			lock.release()
			cell()
			line := "| " + w.library + " | " + strings.Join(row, " | ") + " |\n"
			if lock.value != "" {
				line = strings.ReplaceAll(line, lock.value, "value")
			}
			assert.Contains(t, string(doc), line)
		})
	}
}

// latin1 makes a letter of each byte, for a pattern that counts bytes.
func latin1(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

// words writes commands as the table does: in code marks, with words for numbers that differ. It
// leaves out what repeats. A "script" in front says that a script has sent them.
func words(commands [][]string) (all []string) {
	script := false
	for _, c := range commands {
		if c[0] == "EVAL" || c[0] == "EVALSHA" {
			script = true
			continue
		}
		for i := range c {
			switch previous := strings.ToUpper(c[max(i-1, 0)]); {
			case slices.Contains([]string{"nx", "px", "ex"}, c[i]):
				c[i] = strings.ToUpper(c[i])
			case c[i] == "604800000":
				c[i] = "retention"
			case previous == "PX" || previous == "EX" || c[0] == "PEXPIRE" && i == 2:
				c[i] = "ttl"
			case previous == "PXAT" || c[0] == "PEXPIREAT" && i == 2:
				c[i] = "time"
			case i == 2 && c[0] == "SET" && strings.HasPrefix(c[1], "redlock:fence:"):
				c[i] = "token"
			}
		}
		if command := "`" + strings.Join(c, " ") + "`"; !slices.Contains(all, command) {
			all = append(all, command)
		}
	}
	if script {
		all[0] = "script: " + all[0]
	}
	return all
}
