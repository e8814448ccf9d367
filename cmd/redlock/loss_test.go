//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/internal/testenv/session"
	"github.com/quorumlock/redlock/redlock"
)

var lossTimes = flag.Int("loss.times", 4, "how `often` TestLossEndsTheCommandBeforeUntil loses a lock in each way")

// lossAtOnce is how many locks are lost at a time. Most machines that run tests have fewer
// processors, so redlock must compete with other processes.
const lossAtOnce = 4

// loss is a lock that was lost while a command ran under it.
type loss struct {
	until time.Time // the end of validity that redlock reported last
	last  time.Time // when the command executed almost its last instruction
	rival time.Time // when another client had the lock; zero if none tried
	said  diary     // by redlock
}

// diary has what was written, and when.
type diary struct{ strings.Builder }

func (d *diary) Write(text []byte) (int, error) {
	fmt.Fprintf(&d.Builder, "%s %s", time.Now().UTC().Format(time.StampMicro), text)
	return len(text), nil
}

// A majority of masters is lost at a random moment. The last instruction of the command, and of its
// children, must come before the validity of the lock ends, whether the masters die or are cut off,
// and whether SIGTERM is heeded or not. No other client has had the lock by then.
func TestLossEndsTheCommandBeforeUntil(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out what needs redis-server")
	}
	for what, lose := range map[string]func(ctx context.Context, dir, line string) (*loss, error){
		"killed masters": loseToDeath, "partition": loseToRival,
	} {
		for who, line := range map[string]string{
			"heeds SIGTERM":     "exec child -hang -trap 0 $BEAT",
			"ignores SIGTERM":   "exec child -hang -ignore $BEAT",
			"leaves one behind": "child -hang -ignore $BEAT & exec child -hang -trap 0",
		} {
			t.Run(what+"/"+who, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(1+*lossTimes/10)*session.Limit, errors.New("the test hangs"))
				defer cancel()
				var mu sync.Mutex
				var all []time.Duration
				var g errgroup.Group
				g.SetLimit(lossAtOnce)
				for range *lossTimes {
					dir := t.TempDir()
					g.Go(func() error {
						l, err := lose(ctx, dir, line)
						if err != nil {
							return err
						}
						mu.Lock()
						defer mu.Unlock()
						all = append(all, l.until.Sub(l.last))
						assert.True(t, l.last.Before(l.until), "ran until %v, lock until %v\n%s", l.last, l.until, &l.said)
						assert.True(t, l.rival.IsZero() || l.last.Before(l.rival), "ran until %v, rival from %v\n%s", l.last, l.rival, &l.said)
						return nil
					})
				}
				require.NoError(t, g.Wait())
				slices.Sort(all)
				t.Logf("%d losses; from the last instruction to the end of validity: min %v, median %v, max %v",
					len(all), all[0], all[len(all)/2], all[len(all)-1])
			})
		}
	}
}

// loseToDeath kills a majority of the masters.
func loseToDeath(ctx context.Context, dir, line string) (*loss, error) {
	l := new(loss)
	masters, err := redisserver.Launch(5)
	if err != nil {
		return l, err
	}
	var urls []string
	for _, m := range masters {
		defer m.Stop()
		urls = append(urls, m.URL())
	}
	err = l.hold(ctx, dir, line, urls, func() error {
		var g errgroup.Group
		for _, i := range rand.Perm(5)[:3] {
			g.Go(func() error { masters[i].Kill(); return nil })
		}
		return g.Wait()
	})
	return l, err
}

// loseToRival cuts the holder off from a majority of the masters. Another client reaches them, and
// wants the lock.
func loseToRival(ctx context.Context, dir, line string) (*loss, error) {
	l := new(loss)
	masters, err := redisserver.Launch(5)
	if err != nil {
		return l, err
	}
	var direct, urls []string
	var links []*redisserver.Link
	for _, m := range masters {
		defer m.Stop()
		link, err := redisserver.OpenLink(m.Addr())
		if err != nil {
			return l, err
		}
		defer link.Close()
		links = append(links, link)
		direct = append(direct, m.URL())
		urls = append(urls, strings.Replace(m.URL(), m.Addr(), link.Addr(), 1))
	}
	rival, err := redlock.Open(direct, redlock.Config{NodeTimeout: masterlist.NodeTimeout})
	if err != nil {
		return l, err
	}
	defer rival.Close()
	var g errgroup.Group
	err = l.hold(ctx, dir, line, urls, func() error {
		for _, i := range rand.Perm(5)[:3] {
			links[i].Stall()
		}
		g.Go(func() (err error) {
			l.rival, err = first(ctx, rival)
			return err
		})
		return nil
	})
	return l, errors.Join(err, g.Wait())
}

// first tries to acquire over and over. It does not queue, because a waiter would get the lock
// later.
func first(ctx context.Context, r *redlock.Redlock) (time.Time, error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		lock, err := r.TryAcquire(ctx, lossKey, 30*time.Second)
		now := time.Now()
		if err == nil {
			return now, lock.Release(ctx)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return now, errors.Join(context.Cause(ctx), err)
		}
	}
}

const (
	lossKey = "key"
	lossTTL = 2 * time.Second
)

// hold runs a command under a lock, and loses the lock at a random moment between two renewals.
func (l *loss) hold(ctx context.Context, dir, line string, urls []string, lose func() error) error {
	beat, started := filepath.Join(dir, "beat"), filepath.Join(dir, "started")
	cmd := exec.CommandContext(ctx, "redlock", "run", "--ttl", lossTTL.String(), "--kill-grace", "600ms",
		"-v", "-w", session.Limit.String(), "--nodes", strings.Join(urls, ","), lossKey, "-c", line)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "BEAT=-beat "+beat+" -started "+started)
	cmd.Stderr = &l.said
	if err := cmd.Start(); err != nil {
		return err
	}
	lost := session.Eventually("the command has started", func() bool { _, err := os.Stat(started); return err == nil })
	if lost == nil {
		<-time.After(rand.N(lossTTL))
		lost = lose()
	}
	if lost != nil {
		_ = cmd.Process.Kill()
	}
	_ = cmd.Wait() // ProcessState has the result
	if lost != nil {
		return fmt.Errorf("%w\n%s", lost, &l.said)
	}
	if got := cmd.ProcessState.ExitCode(); got != cli.ExitLost {
		return fmt.Errorf("exit status %d\n%s", got, &l.said)
	}
	ended := regexp.MustCompile(`validity ended (\S+Z)`).FindStringSubmatch(l.said.String())
	if ended == nil {
		return fmt.Errorf("no end of validity in %s", &l.said)
	}
	var err error
	if l.until, err = time.Parse(time.RFC3339, ended[1]); err == nil {
		l.last, err = lastBeat(beat)
	}
	return err
}
