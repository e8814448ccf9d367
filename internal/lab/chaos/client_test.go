//go:build linux

package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/redlock"
)

const (
	shortestTTL = 300 * time.Millisecond
	longestTTL  = time.Second
	nodeTimeout = 60 * time.Millisecond
	workers     = 4

	// hang is longer than anything takes on a loaded machine.
	hang = 30 * time.Second
)

var keys = []string{"left", "right", "up", "down", "front", "back"}

// clientConfig is the configuration of a client process.
type clientConfig struct {
	Client int           // its number, which is never reused
	Epoch  time.Duration // of trueTime
	Seed   uint64
	URLs   []string

	// Hold, if set, makes the client only lock the first key with this ttl, and keep it.
	Hold time.Duration

	Keys    int // how many of keys it contends for
	Fencing bool
	Guard   time.Duration // redlock.Config.RestartGuard
	Ahead   time.Duration // of the machine's clock; negative: behind it
}

// settle is the order, on a client's standard input, to finish after the storm.
const settle = "settle\n"

// abandoned is the exit code of a client whose parent has gone.
const abandoned = 3

// client is the part of a client that runs in its process.
type client struct {
	config clientConfig
	clock  trueTime
	locks  *redlock.Redlock
	eventLog
	ops   atomic.Int64
	ended sync.WaitGroup // locks whose end has not been recorded
}

// runClient is the client process. It ends when it has settled, or at once when its standard
// input ends: then its parent has gone.
func runClient(config string) error {
	c := &client{eventLog: eventLog{to: os.Stdout}}
	if err := json.Unmarshal([]byte(config), &c.config); err != nil {
		return err
	}
	c.clock.epoch = c.config.Epoch
	storm, over := context.WithCancel(context.Background())
	go func() {
		orders := bufio.NewReader(os.Stdin)
		if order, _ := orders.ReadString('\n'); order != settle {
			os.Exit(abandoned)
		}
		over()
		_, _ = io.Copy(io.Discard, orders)
		os.Exit(abandoned)
	}()

	var err error
	c.locks, err = redlock.Open(c.config.URLs, redlock.Config{
		NodeTimeout: nodeTimeout, Fencing: c.config.Fencing, RestartGuard: c.config.Guard,
		Clock: clock.Skewed(clock.System(), 1, c.config.Ahead),
	})
	if err != nil {
		return err
	}
	if c.config.Hold > 0 {
		err = c.keep(storm, c.config.Hold)
	} else {
		var g sync.WaitGroup
		for w := range workers {
			g.Go(func() { c.work(storm, w) })
		}
		g.Wait()
		err = c.live()
	}
	if err != nil {
		return err
	}
	return c.locks.Close()
}

func (c *client) work(ctx context.Context, worker int) {
	dice := rand.New(rand.NewPCG(c.config.Seed, uint64(c.config.Client*workers+worker)))
	for ctx.Err() == nil {
		key, ttl := keys[dice.IntN(c.config.Keys)], drawTTL(dice)
		patience := time.Duration(0)
		if dice.IntN(4) > 0 {
			patience = 50*time.Millisecond + upTo(dice, time.Second)
		}
		if h, err := c.acquire(ctx, key, ttl, patience); err == nil {
			h.use(ctx, dice)
		} else {
			wait(ctx, upTo(dice, 20*time.Millisecond)) // as a refused caller would
		}
	}
}

// drawTTL prefers short ttls, so that more happens.
func drawTTL(dice *rand.Rand) time.Duration {
	part := dice.Float64()
	return (shortestTTL + time.Duration(part*part*part*float64(longestTTL-shortestTTL))).Truncate(time.Millisecond)
}

// live checks that every key can be locked once nothing fails any more.
func (c *client) live() error {
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	for _, key := range keys[:c.config.Keys] {
		h, err := c.acquire(ctx, key, longestTTL, hang)
		if err != nil {
			return fmt.Errorf("client %d: after the storm: %w", c.config.Client, err)
		}
		h.release()
	}
	// Close would release the abandoned locks, and no event would record that.
	c.ended.Wait()
	return nil
}

// keep locks the first key and holds it until the order to settle comes.
func (c *client) keep(ctx context.Context, ttl time.Duration) error {
	h, err := c.acquire(ctx, keys[0], ttl, hang)
	if err != nil {
		return err
	}
	<-ctx.Done()
	h.release()
	c.ended.Wait()
	return nil
}

// acquire waits for the key until patience is over. Without patience it tries once.
func (c *client) acquire(ctx context.Context, key string, ttl, patience time.Duration) (*hold, error) {
	h := &hold{client: c, key: key, ttl: ttl, op: int(c.ops.Add(1))}
	h.tell(history.Asked, 0, nil)
	var err error
	if patience > 0 {
		waiting, cancel := context.WithTimeout(ctx, patience)
		h.lock, err = c.locks.Acquire(waiting, key, ttl)
		cancel()
	} else {
		h.lock, err = c.locks.TryAcquire(ctx, key, ttl)
	}
	if err != nil {
		h.tell(history.Denied, 0, err)
		return nil, err
	}
	h.tell(history.Granted, h.until(), nil)
	c.ended.Add(1)
	held := h.lock.Context()
	context.AfterFunc(held, func() {
		defer c.ended.Done()
		h.tell(history.Ended, h.until(), context.Cause(held))
	})
	return h, nil
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
