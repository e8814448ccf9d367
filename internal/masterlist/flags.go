// Package masterlist finds the masters of a command in its flags, in the environment, or in a file.
package masterlist

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"github.com/quorumlock/redlock/internal/endpoint"
	"github.com/quorumlock/redlock/redlock"
)

// Flags are the flags that list a command's masters and give the prefix of their keys.
type Flags struct {
	nodes  URLs
	file   string
	Prefix string
	set    *pflag.FlagSet    // the command's flags
	Warn   func(text string) // called with a warning about the list; nil discards it
	listed *List             // nil until the list is read
}

// Register adds the flags to those of a command.
func (c *Flags) Register(set *pflag.FlagSet) {
	c.set = set
	set.Var(&c.nodes, "nodes", "the masters: redis://, rediss:// or unix://\nURLs, separated by commas or in several\n--nodes; else those of "+NodesVariable+", else of\na file")
	set.StringVar(&c.file, "nodes-file", "", "a file with one URL in a line; else that of\n"+NodesFileVariable+", else redlock/nodes in\nyour config folder, else "+SystemNodes)
	set.StringVar(&c.Prefix, "prefix", "", "what the key begins with on the masters, for\na user who may touch no others")
}

// masters reads the list once, and warns about it once. It returns when ctx ends, because a file
// can block for ever: a named pipe without a writer, or a file on a server that hangs. The
// goroutine that reads it is then left behind.
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
	if list.exposed != "" && c.Warn != nil {
		c.Warn(list.exposed)
	}
	return list, nil
}

// Open makes a Redlock for these masters. It contacts no server, so each of its errors is a usage
// error, except the end of ctx.
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

// Clients returns a client for each master, with the options that a Redlock would use.
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

// NodeTimeout is longer than the library's default: a first connection over a long distance, or a
// busy machine, must not make a master look dead to a user who sees the lock for the first time. It
// slows nothing down, because a decision does not wait for the last node.
const NodeTimeout = time.Second

// parting is how long silent masters may delay the end of a command after the decision. Commands
// that were sent to them arrive even after the process has ended. Where a deletion was not sent, the
// key lives until its ttl is over.
const parting = 200 * time.Millisecond

// Leave closes locks, and returns after parting at the latest. What still goes on then ends with
// the process.
func Leave(locks *redlock.Redlock) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = locks.Close() // nobody is left to report its error to
	}()
	select {
	case <-closed:
	case <-time.After(parting):
	}
}
