package sim

import (
	"context"

	"github.com/quorumlock/redlock/internal/lab/scene"
	"github.com/quorumlock/redlock/redlock"
)

// observer shows what a client learns: the votes that it gets, and whose votes do not count.
type observer struct {
	redlock.NoObserver
	show   *show
	client int // from 1
	clock  *hostClock
}

// observer returns the Observer of a client; nil if nobody watches.
func (s *show) observer(client int, clock *hostClock) redlock.Observer {
	if s == nil {
		return nil
	}
	return observer{show: s, client: client, clock: clock}
}

func (o observer) NodeVoted(_ context.Context, v redlock.NodeVote) {
	o.show.voted(o.client, v.Node+1, v.Op, v.Vote.String())
}

func (o observer) QuarantineBegan(q redlock.Quarantine) {
	until := o.show.w.now() + o.clock.until(q.Until)
	o.show.master(q.Node, func(m *scene.Master) { m.Guarded = max(m.Guarded, until) })
}

func (o observer) QuarantineEnded(q redlock.Quarantine) {
	o.show.master(q.Node, func(m *scene.Master) {
		if m.Guarded <= o.show.w.now() {
			m.Guarded = 0
		}
	})
}
