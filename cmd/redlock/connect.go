package main

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

// connection is how a command finds its masters, and what their keys begin with.
type connection struct {
	nodes    nodeURLs
	file     string
	prefix   string
	set      *pflag.FlagSet // that they are flags of
	warnings io.Writer      // nil: nobody wants any
	listed   *masterList    // nil: not yet
}

func (c *connection) flags(set *pflag.FlagSet) {
	c.set = set
	set.Var(&c.nodes, "nodes", "the masters: redis://, rediss:// or unix://\nURLs, separated by commas or in several\n--nodes; else those of "+nodesVariable+", else of\na file")
	set.StringVar(&c.file, "nodes-file", "", "a file with one URL in a line; else that of\n"+nodesFileVariable+", else redlock/nodes in\nyour config folder, else "+systemNodes)
	set.StringVar(&c.prefix, "prefix", "", "what the key begins with on the masters, for\na user who may touch no others")
}

// masters are listed once: what there is to say of the list is said once. The end of ctx ends
// it, as a file can block for as long as it likes: a named pipe without a writer, or one on a
// server that hangs. What blocks is left behind then.
func (c *connection) masters(ctx context.Context) (list *masterList, err error) {
	if c.listed != nil {
		return c.listed, nil
	}
	listed := make(chan func() (*masterList, error), 1)
	go func() {
		list, err := c.list()
		listed <- func() (*masterList, error) { return list, err }
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
	if list.exposed != "" && c.warnings != nil {
		_, _ = fmt.Fprintf(c.warnings, "redlock: warning: %s\n", plain.Printable(list.exposed))
	}
	return list, nil
}

// open makes a Redlock for these masters. It contacts nobody, so each of its errors is a
// usage error, but for the end of ctx.
func (c *connection) open(ctx context.Context, cfg redlock.Config) (*redlock.Redlock, error) {
	list, err := c.masters(ctx)
	if err != nil {
		return nil, err
	}
	cfg.KeyPrefix = c.prefix
	r, err := redlock.Open(list.urls, cfg)
	if err != nil {
		return nil, list.wrong(err)
	}
	return r, nil
}

// clients are one for each master, as a Redlock has them.
func (c *connection) clients(ctx context.Context, patience time.Duration) (all []*redis.Client, err error) {
	list, err := c.masters(ctx)
	if err != nil {
		return nil, err
	}
	options := make([]*redis.Options, len(list.urls))
	for i, url := range list.urls {
		if options[i], err = endpoint.Options(url, patience); err != nil {
			return nil, list.wrong(fmt.Errorf("urls[%d] %w", i, err))
		}
	}
	for _, opt := range options {
		all = append(all, redis.NewClient(opt))
	}
	return all, nil
}

// nodeTimeout is longer than the library's default: a first connection over a
// long way, or a busy machine, must not make a master look dead to somebody who
// sees the lock for the first time. It slows nothing down, as a decision does not
// wait for the last node.
const nodeTimeout = time.Second

// parting is how long masters that have not answered yet may keep us when all is decided. What
// they were sent reaches them without us; what they were not is left to its ttl.
const parting = 200 * time.Millisecond

// leave closes locks, for as long as parting. All that then goes on ends with the process.
func leave(locks *redlock.Redlock) {
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
