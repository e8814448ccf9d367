package quorum_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
)

const timeout = 200 * time.Millisecond

type (
	call  = quorum.Call[string]
	round = quorum.Round[string]
	spec  = quorum.Spec[string]
)

// node is a Transport that runs a function of the test and records its batches.
type node struct {
	mu    sync.Mutex
	carry func(batch []*call)
	seen  [][]string
	rest  int
}

func (n *node) Carry(_ context.Context, batch []*call) {
	var ops []string
	for _, c := range batch {
		ops = append(ops, *c.Op())
	}
	n.mu.Lock()
	n.seen = append(n.seen, ops)
	carry := n.carry
	n.mu.Unlock()
	carry(batch)
}

func (n *node) Rest() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rest++
}

func (n *node) become(carry func([]*call)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.carry = carry
}

func (n *node) batches() [][]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.seen)
}

func (n *node) rests() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.rest
}

func grants(batch []*call) {
	for _, c := range batch {
		c.Grant(0)
	}
}

func refuses(batch []*call) {
	for _, c := range batch {
		c.Refuse(7, errors.New("no"))
	}
}

func fails(batch []*call) {
	for _, c := range batch {
		c.Fail(errors.New("broken"))
	}
}

// hangs loses every answer after d.
func hangs(d time.Duration) func([]*call) {
	return func(batch []*call) {
		time.Sleep(d)
		for _, c := range batch {
			c.Lose(errors.New("timed out"))
		}
	}
}

// late grants after d.
func late(d time.Duration) func([]*call) {
	return func(batch []*call) {
		time.Sleep(d)
		grants(batch)
	}
}

var errRefused = errors.New("connection refused")

// unreachable refuses connections to node 0 of the group, after a dial of d.
func unreachable(g *quorum.Group[string], d time.Duration) func([]*call) {
	return func(batch []*call) {
		time.Sleep(d)
		g.Unreachable(0, errRefused)
		for _, c := range batch {
			c.Unsent(errRefused)
		}
	}
}

func group(nodes ...*node) *quorum.Group[string] {
	transports := make([]quorum.Transport[string], len(nodes))
	for i, n := range nodes {
		transports[i] = n
	}
	return quorum.NewGroup(transports, clock.System(), timeout)
}

// run starts a round and waits for it. It returns the round and the virtual time it took.
func run(g *quorum.Group[string], s spec) (*round, time.Duration) {
	r := g.Start(s)
	r.Wait(context.Background())
	return r, r.Decided().Sub(r.Start())
}

// pause has a node of a group of one refuse connections until its lane pauses, and then grant. It
// is called in a bubble.
func (n *node) pause(g *quorum.Group[string]) {
	n.become(unreachable(g, 0))
	for range 10 {
		run(g, spec{Op: "refused"})
		synctest.Wait()
	}
	n.become(grants)
}
