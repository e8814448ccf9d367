package conn

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
	"github.com/quorumlock/redlock/redlock/internal/voter"
)

// pinned is one connection out of a client's pool, taken for a while. A connection that breaks
// is not replaced silently, so no command is sent twice.
type pinned struct {
	client   *redis.Client
	patience time.Duration   // Config.NodeTimeout
	conn     *redis.Conn     // nil while it is not needed
	taken    time.Time       // when conn was taken, if the client limits its life
	rested   time.Time       // when a connection was last given back; zero: never
	pipe     redis.Pipeliner // conn's pipeline; nil until one is needed
	wire     wire

	useless bool // the server does not know the user at the other end of conn

	check verification

	// Reasons to send a greeting before the next batch.
	negotiate    bool // the client has yet to make its first connection itself
	mayBeDropped bool // conn may have been dropped on the way while it was idle
	panicked     bool // go-redis panicked on a reply
}

func pin(client *redis.Client, server *voter.Server, recordKey string, clk clock.Clock, patience time.Duration) *pinned {
	return &pinned{
		client: client, patience: patience, negotiate: negotiates(client),
		check: verification{server: server, clock: clk, recordKey: recordKey},
	}
}

// take gets a connection, unless there is one, and reports whether it did. It does not dial: the
// first command does, if the pool has no connection. The connection has the hooks and the read
// timeout of the client: a lane waits that long for a silent node, so that it sees a late grant.
func (p *pinned) take() (fresh bool) {
	// A connection that is always in use would outlive ConnMaxLifetime, which the pool checks
	// only when it hands one out. So the lane takes its connection anew ten times in that time.
	life := p.client.Options().ConnMaxLifetime
	if p.conn != nil && life > 0 && p.now().Sub(p.taken) >= life/10 {
		p.rest()
	}
	if p.conn != nil {
		return false
	}
	if life > 0 {
		p.taken = p.now()
	}
	p.mayBeDropped = !p.rested.IsZero() && p.now().Sub(p.rested) >= idleTooLong
	p.conn = p.client.Conn()
	p.check.reconnected()
	return true
}

func (p *pinned) now() time.Time { return p.check.clock.Now() }

// rest gives the connection back to its pool, and frees the memory.
func (p *pinned) rest() {
	if p.conn != nil {
		_ = p.conn.Close() // the pool has it now, either way
		p.conn, p.pipe, p.rested = nil, nil, p.now()
		p.wire = wire{loaded: p.wire.loaded, sharded: p.wire.sharded, deniedAt: p.wire.deniedAt, denial: p.wire.denial}
	}
}

// drop gives up a connection that broke, or whose server replied with something unexpected: the
// next one may be to a server that was restarted.
func (p *pinned) drop() {
	p.rest()
	p.check.reconnected()
	p.check.server.Disconnected()
	clear(p.wire.loaded)
}

// quit closes a connection on which the server wants a password, which go-redis sends only on a
// new one. Given back, it would look good to the pool, and credentials that the client gets
// later would never be used. The server closes the connection at QUIT. The pool sees that, as
// no reply to the next command can be read.
func (p *pinned) quit(ctx context.Context) {
	if !p.useless {
		return
	}
	p.useless = false
	_, _ = p.conn.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		_ = pipe.Process(ctx, newQuestion(nil, "quit"))
		return pipe.Process(ctx, newQuestion(nil, "ping"))
	})
}

// exchange sends the batch over the connection and answers its calls. It returns the calls that
// a Cluster shard redirected. If any other call got no vote, it drops the connection.
func (p *pinned) exchange(ctx context.Context, batch []*call) (elsewhere []*call) {
	ok := false
	// go-redis panics on a reply that claims an absurd length. It takes its connection out of
	// use first. Such a reply counts as none.
	defer func() {
		if e := recover(); e != nil {
			ok, elsewhere, p.panicked = false, nil, true
			for _, c := range batch {
				c.Lose(errs.Scrub(fmt.Errorf("%w: %v", ErrGarbled, e), c.Op().Value))
			}
		}
		if !ok {
			p.quit(ctx)
			p.drop()
		}
	}()
	if err := p.greet(ctx); err != nil {
		for _, c := range batch {
			c.Unsent(errs.Scrub(err, c.Op().Value))
		}
		return nil
	}
	var unknown []*call
	ok, unknown, elsewhere = p.roundTrip(ctx, batch)
	if len(unknown) > 0 && ok {
		// The server lost its scripts while we were connected. Now each call carries its script
		// whole, so the server cannot lose some in between again.
		clear(p.wire.loaded)
		p.wire.whole = true
		var again, more []*call
		ok, again, more = p.roundTrip(ctx, toRepeat(unknown, batch))
		unknown, elsewhere = again, append(elsewhere, more...)
		p.wire.whole = false
	}
	for _, c := range unknown {
		c.Unsent(errNoScript)
	}
	return elsewhere
}

// toRepeat returns the calls of a batch that must be sent again: the unknown ones, whose script the
// server did not have, and those that remove what an unknown one before them makes, a key or a
// queue entry. The removal was executed too early. A Retain is repeated behind an unknown call that
// gives its key a ttl. Repeated in their order, all these leave what
// the batch in its order would have left. Nothing else may be repeated: an acquisition that was
// refused could be granted now, and its caller would not know.
//
// A call that removes something may be executed twice, and its first answer stands. A call in
// between may have been refused needlessly. The Dequeue that ends a wait is not repeated after an
// unknown Enqueue: the Enqueue is sent again as a Dequeue; see [wireCmd.fill].
func toRepeat(unknown, batch []*call) (again []*call) {
	// The values whose keys are made again, and the keys whose queue entries are.
	values, prolonged, queued := map[string]bool{}, map[string]bool{}, map[any]bool{}
	for _, c := range batch {
		switch op := c.Op(); {
		case len(unknown) > 0 && unknown[0] == c:
			unknown = unknown[1:]
			prolonged[op.Value] = op.Kind.Takes() || op.Kind == protocol.Extend
			if op.Kind.Takes() {
				values[op.Value] = true
				queued[op.NodeKey] = queued[op.NodeKey] || op.Sender != nil
			}
			again = append(again, c)
		case values[op.Removes()], op.Leaves() && queued[op.NodeKey], op.Kind == protocol.Retain && prolonged[op.Value]:
			again = append(again, c)
		}
	}
	return again
}

// roundTrip sends the batch in one pipeline. unknown are the calls whose script the server does
// not have, and elsewhere those that a Cluster shard redirected. It answers all others.
func (p *pinned) roundTrip(ctx context.Context, batch []*call) (ok bool, unknown, elsewhere []*call) {
	p.wire.reset()
	p.wire.retryQueue(p.check.clock)
	sent := p.check.guardTime()
	asks := p.check.due(sent)
	if asks {
		p.check.ask(&p.wire)
	}
	p.wire.encode(batch, p.check.clock)
	var err error
	if len(p.wire.out) == 1 {
		err = p.conn.Process(ctx, p.wire.out[0]) // cheaper than a pipeline of one
	} else {
		if p.pipe == nil {
			p.pipe = p.conn.Pipeline()
		}
		_ = p.pipe.BatchProcess(ctx, p.wire.out...) // queues them, and cannot fail
		_, err = p.pipe.Exec(ctx)
	}
	if asks {
		p.check.heard(err)
	}
	ineligible := p.check.server.Eligibility(sent)
	if ineligible == nil {
		ineligible = p.check.err
	}
	ok = true
	for i, c := range batch {
		c.By(p.check.voter)
		switch cmd := p.wire.cmds[i]; {
		case noScript(cmd.Err()):
			unknown = append(unknown, c)
		case Moved(cmd.Err()):
			elsewhere = append(elsewhere, c)
		default:
			switch {
			case cmd.form.script != &script.Queue:
			case Denied(cmd.Err()):
				p.wire.deniedAt, p.wire.denial = p.check.clock.Now(), cmd.Err()
			case cmd.Err() == nil:
				p.wire.deniedAt, p.wire.denial = time.Time{}, nil
			}
			p.useless = p.useless || unauthenticated(cmd.Err())
			ok = answer(c, cmd, err, ineligible, p.wire.denial) && ok
		}
	}
	if write := p.check.correctRecord(); ok && write != nil {
		err := p.conn.Process(ctx, write) // after the batch is answered: no caller waits for it
		ok = err == nil || errs.Answered(err)
	}
	if ok { // otherwise the connection is dropped, and go-redis may still use the commands
		p.wire.reset()
	}
	return ok, unknown, elsewhere
}
