// Package masterlist finds the masters of a command: in its flags, in the environment, or in a file.
package masterlist

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"github.com/quorumlock/redlock/internal/endpoint"
	"github.com/quorumlock/redlock/internal/plain"
	"github.com/quorumlock/redlock/redlock"
)

// Flags is how a command finds its masters, and what their keys begin with.
type Flags struct {
	nodes    URLs
	file     string
	Prefix   string
	set      *pflag.FlagSet // that they are flags of
	Warnings io.Writer      // nil: nobody wants any
	listed   *List          // nil: not yet
}

// Register adds the flags to those of a command.
func (c *Flags) Register(set *pflag.FlagSet) {
	c.set = set
	set.Var(&c.nodes, "nodes", "the masters: redis://, rediss:// or unix://\nURLs, separated by commas or in several\n--nodes; else those of "+NodesVariable+", else of\na file")
	set.StringVar(&c.file, "nodes-file", "", "a file with one URL in a line; else that of\n"+NodesFileVariable+", else redlock/nodes in\nyour config folder, else "+SystemNodes)
	set.StringVar(&c.Prefix, "prefix", "", "what the key begins with on the masters, for\na user who may touch no others")
}

// masters are listed once: what there is to say of the list is said once. The end of ctx ends
// it, as a file can block for as long as it likes: a named pipe without a writer, or one on a
// server that hangs. What blocks is left behind then.
func (c *Flags) masters(ctx context.Context) (list *List, err error) {
	if c.listed != nil {
		return c.listed, nil
	}
	listed := make(chan func() (*List, error), 1)
	go func() {
		list, err := c.list()
		listed <- func() (*List, error) { return list, err }
	}()
	select {
	case result := <-listed:
		list, err = result()
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	c.listed = list
	if list.exposed != "" && c.Warnings != nil {
		_, _ = fmt.Fprintf(c.Warnings, "redlock: warning: %s\n", plain.Printable(list.exposed))
	}
	return list, nil
}

// Open makes a Redlock for these masters. It contacts nobody, so each of its errors is a
// usage error, but for the end of ctx.
func (c *Flags) Open(ctx context.Context, cfg redlock.Config) (*redlock.Redlock, error) {
	list, err := c.masters(ctx)
	if err != nil {
		return nil, err
	}
	cfg.KeyPrefix = c.Prefix
	r, err := redlock.Open(list.urls, cfg)
	if err != nil {
		return nil, list.Wrong(err)
	}
	return r, nil
}

// Clients are one for each master, as a Redlock has them.
func (c *Flags) Clients(ctx context.Context, patience time.Duration) (all []*redis.Client, err error) {
	list, err := c.masters(ctx)
	if err != nil {
		return nil, err
	}
	options := make([]*redis.Options, len(list.urls))
	for i, url := range list.urls {
		if options[i], err = endpoint.Options(url, patience); err != nil {
			return nil, list.Wrong(fmt.Errorf("urls[%d] %w", i, err))
		}
	}
	for _, opt := range options {
		all = append(all, redis.NewClient(opt))
	}
	return all, nil
}

// NodeTimeout is longer than the library's default: a first connection over a
// long way, or a busy machine, must not make a master look dead to somebody who
// sees the lock for the first time. It slows nothing down, as a decision does not
// wait for the last node.
const NodeTimeout = time.Second

// parting is how long masters that have not answered yet may keep us when all is decided. What
// they were sent reaches them without us; what they were not is left to its ttl.
const parting = 200 * time.Millisecond

// Leave closes locks, for as long as parting. All that then goes on ends with the process.
func Leave(locks *redlock.Redlock) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = locks.Close() // it fails where there is nobody to tell
	}()
	select {
	case <-closed:
	case <-time.After(parting):
	}
}
