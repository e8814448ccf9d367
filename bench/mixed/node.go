package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// nodePackages are the packages to install: the newest of node-redlock's version 5, and the
// client that it needs.
var nodePackages = []string{"redlock@5.0.0-beta.2", "ioredis@5"}

//go:embed contend.mjs
var nodeProgram []byte

var errNoNode = errors.New("skipped: node and npm are not installed")

// nodeClient is node-redlock in a temporary folder.
type nodeClient struct{ dir string }

func installNode(ctx context.Context) (_ *nodeClient, err error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, errNoNode
		}
	}
	c := &nodeClient{}
	if c.dir, err = os.MkdirTemp("", "redlock-mixed-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.remove()
		}
	}()
	progress("npm install %v", nodePackages)
	if err := os.WriteFile(filepath.Join(c.dir, "package.json"), []byte(`{"private": true}`), 0o600); err != nil {
		return nil, err
	}
	install := exec.CommandContext(ctx, "npm", append([]string{"install", "--no-audit", "--no-fund", "--ignore-scripts"}, nodePackages...)...)
	install.Dir = c.dir
	if said, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm install: %w: %s", err, bytes.TrimSpace(said))
	}
	return c, os.WriteFile(c.program(), nodeProgram, 0o600)
}

func (c *nodeClient) program() string { return filepath.Join(c.dir, "contend.mjs") }

func (c *nodeClient) remove() { _ = os.RemoveAll(c.dir) }

// nodeKey is the key of one contender of node-redlock, and the tally of its locks.
type nodeKey struct {
	key   string
	tally *tally
}

// start returns when all contenders are connected. They end with stop.
func (c *nodeClient) start(ctx context.Context, addrs []string, keys []nodeKey, hold, pause time.Duration) (stop func() error, err error) {
	var names []string
	for _, k := range keys {
		names = append(names, k.key)
	}
	plan, err := json.Marshal(map[string]any{
		"addrs": addrs, "keys": names, "hold": hold.Milliseconds(), "pause": pause.Milliseconds(), "expiry": expiry.Milliseconds(),
	})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "node", c.program(), string(plan))
	var said bytes.Buffer
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		_ = cmd.Wait()
		return nil, fmt.Errorf("node: %s", bytes.TrimSpace(said.Bytes()))
	}
	var counted sync.WaitGroup
	var wrong error
	counted.Go(func() {
		for lines.Scan() {
			var i, waited int
			if _, err := fmt.Sscan(lines.Text(), &i, &waited); err != nil || i < 0 || i >= len(keys) {
				wrong = fmt.Errorf("node says %q", lines.Text())
				continue
			}
			keys[i].tally.granted(time.Now(), time.Duration(waited)*time.Millisecond)
		}
	})
	return func() error {
		_ = in.Close()
		counted.Wait()
		err := cmd.Wait()
		if ctx.Err() != nil {
			return nil // killed
		}
		if err != nil {
			err = fmt.Errorf("node: %w: %s", err, bytes.TrimSpace(said.Bytes()))
		}
		return errors.Join(wrong, err)
	}, nil
}
