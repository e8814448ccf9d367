package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"github.com/quorumlock/redlock/internal/endpoint"
	"github.com/quorumlock/redlock/redlock"
)

// nodesVariable lists masters as --nodes does.
const nodesVariable = "REDLOCK_NODES"

// connection is how a command finds its masters, and what their keys begin with.
type connection struct {
	nodes  nodeURLs
	prefix string
}

func (c *connection) flags(set *pflag.FlagSet) {
	set.Var(&c.nodes, "nodes", "the masters: redis://, rediss:// or unix://\nURLs, separated by commas or in several\n--nodes; else those of "+nodesVariable+", else of\nthe file redlock/nodes in your config folder")
	set.StringVar(&c.prefix, "prefix", "", "what the key begins with on the masters, for\na user who may touch no others")
}

// urls are the masters' URLs, and where they are from: --nodes, or else the variable, or
// else the file, which has one in each line that is neither empty nor a comment with #. An
// empty variable is as none. None at all is a usage error.
func (c *connection) urls() (urls []string, source string, err error) {
	if len(c.nodes) > 0 {
		return c.nodes, "--nodes", nil
	}
	if list := os.Getenv(nodesVariable); strings.TrimSpace(list) != "" {
		var nodes nodeURLs
		_ = nodes.Set(list)
		return nodes, nodesVariable, nil
	}
	folder, err := os.UserConfigDir()
	if err != nil { // there is no home
		return nil, "", usagef("no masters: give --nodes, or set %s", nodesVariable)
	}
	file := filepath.Join(folder, "redlock", "nodes")
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", usagef("cannot read the list of masters: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			urls = append(urls, line)
		}
	}
	if len(urls) == 0 {
		return nil, "", usagef("no masters: give --nodes, set %s, or list them in %s", nodesVariable, file)
	}
	return urls, file, nil
}

// open makes a Redlock for these masters. It contacts nobody, so each of its errors is a
// usage error.
func (c *connection) open(cfg redlock.Config) (*redlock.Redlock, error) {
	urls, source, err := c.urls()
	if err != nil {
		return nil, err
	}
	cfg.KeyPrefix = c.prefix
	r, err := redlock.Open(urls, cfg)
	if err != nil {
		return nil, badURL(source, err)
	}
	return r, nil
}

// clients are one for each master, as a Redlock has them.
func (c *connection) clients(patience time.Duration) (all []*redis.Client, err error) {
	urls, source, err := c.urls()
	if err != nil {
		return nil, err
	}
	options := make([]*redis.Options, len(urls))
	for i, url := range urls {
		if options[i], err = endpoint.Options(url, patience); err != nil {
			return nil, badURL(source, fmt.Errorf("urls[%d] %w", i, err))
		}
	}
	for _, opt := range options {
		all = append(all, redis.NewClient(opt))
	}
	return all, nil
}

// badURL is an error of redlock.Open, which asks no server: every one is about what it
// was given. It names a URL by its place and never quotes it.
func badURL(source string, err error) error {
	return &usageError{fmt.Errorf("%s: %s", source, strings.TrimPrefix(err.Error(), "redlock: "))}
}
