package subject

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/bench/result"
)

// How the ceiling uses its connections. These values gave the most, of depths from 64 to 2048
// and one to four batches in flight.
const (
	ceilingDepth   = 1024 // SETs in a batch, and as many releases
	ceilingBatches = 3    // in flight, each on its own connections
)

// Ceiling is the most that the masters can do: batches of SETs followed by their releases,
// prepared in memory and written as one pipeline to every master. A batch is over when every
// master has answered all of it and every reply has been checked. Then its connections take
// the next batch. There is no lock and no waiting for a single operation, so there is no
// latency to show.
type Ceiling struct {
	depth int // cycles in a batch
	lines []*line
}

// line is one connection to each master.
type line struct {
	conns []net.Conn
	sha   string
	batch batch
}

// batch is what is written to a master, and what it must answer.
type batch struct{ request, reply []byte }

var ceilingSpec = Spec{
	Name:    result.Ceiling,
	Open:    func(t Target) (Locker, error) { return OpenCeiling(t, ceilingDepth, ceilingBatches) },
	Keys:    itself,
	Refused: is(ErrHeld),
}

// OpenCeiling opens a ceiling with batches of depth cycles, of which the given number is in
// flight.
func OpenCeiling(t Target, depth, batches int) (*Ceiling, error) {
	c := &Ceiling{depth: depth}
	for i := range batches {
		conns, sha, err := dialAll(t.Addrs)
		if err != nil {
			_ = c.Close()
			return nil, err
		}
		keys := make([]string, depth)
		for k := range keys {
			keys[k] = fmt.Sprintf("ceiling:%02d:%05d", i, k) // as long as the others' keys
		}
		c.lines = append(c.lines, &line{conns: conns, sha: sha, batch: newBatch(sha, keys)})
	}
	return c, nil
}

func newBatch(sha string, keys []string) (b batch) {
	for _, k := range keys {
		b.request = appendSet(b.request, k)
		b.reply = append(b.reply, replyOK...)
	}
	for _, k := range keys {
		b.request = appendRelease(b.request, sha, k)
		b.reply = append(b.reply, replyDeleted...)
	}
	return b
}

// Close closes the connections.
func (c *Ceiling) Close() error {
	for _, l := range c.lines {
		closeAll(l.conns)
	}
	return nil
}

// Run runs for d, and returns how many cycles every master has done, and how many in a second.
// Batches under way at the end are finished and count, with the time that they take.
func (c *Ceiling) Run(d time.Duration) (cycles int, perSecond float64, err error) {
	start := time.Now()
	return c.run(func() bool { return time.Since(start) < d })
}

// Cycles makes n cycles, rounded up to whole batches.
func (c *Ceiling) Cycles(n int) error {
	var left atomic.Int64
	left.Store(int64(n))
	_, _, err := c.run(func() bool { return left.Add(int64(-c.depth)) > int64(-c.depth) })
	return err
}

// run starts batches while more returns true, and none after an error.
func (c *Ceiling) run(more func() bool) (cycles int, perSecond float64, err error) {
	var (
		g     sync.WaitGroup
		mu    sync.Mutex
		errs  []error
		start = time.Now()
	)
	for _, l := range c.lines {
		g.Go(func() {
			n := 0
			var err error
			for err == nil && more() {
				err = l.exchange()
				n += c.depth
			}
			took := time.Since(start)
			mu.Lock()
			defer mu.Unlock()
			cycles += n
			perSecond += float64(n) / took.Seconds()
			errs = append(errs, err)
		})
	}
	g.Wait()
	return cycles, perSecond, errors.Join(errs...)
}

// exchange performs one batch on all masters at once.
func (l *line) exchange() error {
	errs := make(chan error, len(l.conns))
	for _, c := range l.conns {
		go func() { errs <- exchange(c, l.batch) }()
	}
	var all []error
	for range l.conns {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// exchange writes a batch and reads the replies that it must get. The replies fit into the
// socket's buffer, so the server never waits for their reader while the writer waits for the
// server.
func exchange(c net.Conn, b batch) error {
	if _, err := c.Write(b.request); err != nil {
		return err
	}
	got := make([]byte, len(b.reply))
	// A refusal may be the whole reply to a single command, and is as long as one.
	n, err := io.ReadAtLeast(c, got, min(len(got), len(replyNil)))
	if err == nil && string(got[:n]) == replyNil {
		return ErrHeld
	}
	if err == nil {
		_, err = io.ReadFull(c, got[n:])
	}
	if err != nil {
		return err
	}
	if string(got) != string(b.reply) {
		return fmt.Errorf("%s: unexpected replies to a batch", c.RemoteAddr())
	}
	return nil
}

// Caller makes single cycles of the two halves of a batch, to show that they lock as a batch
// does. It must not be used during Run.
func (c *Ceiling) Caller() Caller { return &ceilingCaller{line: c.lines[0]} }

type ceilingCaller struct {
	line *line
	key  string
}

func (c *ceilingCaller) Acquire(_ context.Context, key string) error {
	c.key = key
	return c.ask(batch{appendSet(nil, key), []byte(replyOK)})
}

func (c *ceilingCaller) Release(context.Context) error {
	return c.ask(batch{appendRelease(nil, c.line.sha, c.key), []byte(replyDeleted)})
}

func (c *ceilingCaller) ask(b batch) error {
	half := line{conns: c.line.conns, batch: b}
	return half.exchange()
}
