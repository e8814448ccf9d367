package redlock

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// pinned is one connection out of a client's pool, taken for a while. What breaks
// is not replaced in silence, so no command is on the wire twice.
type pinned struct {
	client *redis.Client
	conn   *redis.Conn     // nil while it is not needed
	pipe   redis.Pipeliner // conn's, once there was a use for it
	wire   wire
	check  verification
}

func pin(client *redis.Client, server *server, marker string) *pinned {
	return &pinned{client: client, check: verification{server: server, marker: marker}}
}

// take gets a connection, with the client's hooks, unless there is one; the dial
// itself comes with the first command. The read timeout is the client's too: that
// long a lane waits for a silent node, so that it sees a late grant. A client that
// would wait for ever gets endless's bound; go-redis gives the hooks up with it.
func (p *pinned) take() (fresh bool) {
	if p.conn != nil {
		return false
	}
	client := p.client
	if client.Options().ReadTimeout <= 0 {
		client = client.WithTimeout(endless)
	}
	p.conn = client.Conn()
	p.check.reconnected(false)
	return true
}

// endless is go-redis' own default read timeout.
const endless = 5 * time.Second

// rest gives the connection back to its pool, and the memory.
func (p *pinned) rest() {
	if p.conn != nil {
		_ = p.conn.Close() // the pool's now, either way
		p.conn, p.pipe = nil, nil
		p.wire = wire{loaded: p.wire.loaded, sharded: p.wire.sharded, plain: p.wire.plain}
	}
}

// drop gives a connection up that broke, or whose server said something strange:
// the next one may be to a server that was restarted.
func (p *pinned) drop() {
	p.rest()
	p.check.reconnected(true)
	clear(p.wire.loaded)
}

// exchange sends the batch over the connection and answers its calls, but for
// those that a Cluster shard sent elsewhere. If anything but plain answers came
// back it drops the connection.
func (p *pinned) exchange(ctx context.Context, batch []*call) (elsewhere []*call) {
	ok := false
	// go-redis panics on a reply that claims an absurd length. It takes its
	// connection out of use first; for us such a node has said nothing.
	defer func() {
		if e := recover(); e != nil {
			ok, elsewhere = false, nil
			for _, c := range batch {
				c.Lose(scrub(fmt.Errorf("%w: %v", errGarbled, e), c.Op().value))
			}
		}
		if !ok {
			p.drop()
		}
	}()
	var unknown []*call
	ok, unknown, elsewhere = p.roundTrip(ctx, batch)
	if len(unknown) > 0 && ok {
		// The server lost its scripts while we were connected.
		clear(p.wire.loaded)
		var again, more []*call
		ok, again, more = p.roundTrip(ctx, behind(unknown, batch))
		unknown, elsewhere = again, append(elsewhere, more...)
	}
	for _, c := range unknown {
		c.Unsent(errNoScript)
	}
	return elsewhere
}

// behind lists what a batch has to be asked again: the calls whose script the server
// did not have, and behind those that take a key, as they do with fencing, the calls
// that delete it. These were done, and nothing may take the key after that; they may be
// done twice, and their answers stand. An attempt on the key that was refused in between
// may have been refused for nothing.
func behind(unknown, batch []*call) (again []*call) {
	taken := map[string]bool{} // values
	for _, c := range batch {
		switch op := c.Op(); {
		case len(unknown) > 0 && unknown[0] == c:
			unknown = unknown[1:]
			taken[op.value] = taken[op.value] || op.kind <= kindTopUp
			again = append(again, c)
		case taken[op.value] && (op.kind == kindRelease || op.kind == kindCleanUp):
			again = append(again, c)
		}
	}
	return again
}

// roundTrip is one pipeline. unknown are the calls whose script the server does
// not have.
func (p *pinned) roundTrip(ctx context.Context, batch []*call) (ok bool, unknown, elsewhere []*call) {
	p.wire.reset()
	p.wire.recover(p.check.server.guard.clock)
	sent := p.check.now()
	asks := p.check.due(sent)
	if asks {
		p.check.ask(&p.wire)
	}
	p.wire.encode(batch)
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
	standing := p.check.server.standing(sent)
	ok = true
	for i, c := range batch {
		switch cmd := p.wire.cmds[i]; {
		case noScript(cmd.Err()):
			unknown = append(unknown, c)
		case moved(cmd.Err()):
			elsewhere = append(elsewhere, c)
		default:
			switch {
			case cmd.form.script != &queueScript:
			case denied(cmd.Err()):
				p.wire.plain = p.check.server.guard.clock.Now()
			case cmd.Err() == nil:
				p.wire.plain = time.Time{}
			}
			ok = c.Op().answer(c, cmd, err, standing) && ok
		}
	}
	if mark := p.check.remark(); ok && mark != nil {
		err := p.conn.Process(ctx, mark) // callers have left
		ok = err == nil || answered(err)
	}
	if ok { // otherwise the connection is dropped, and go-redis may be at it still
		p.wire.reset()
	}
	return ok, unknown, elsewhere
}
