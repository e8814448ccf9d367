package scenario

import (
	"errors"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
)

// path holds the links to a cell's masters, and their faults. A hung master is one whose link
// stalls: it accepts connections and bytes, on existing connections too, and never answers.
type path struct {
	links         []*redisserver.Link
	hung, refused []*redisserver.Link
}

// addrs returns the addresses that a cell's subjects dial.
func (r *Runner) addrs(cell Cell) ([]string, error) {
	if !cell.Linked {
		return r.Masters.Addrs(cell.Nodes), nil
	}
	links, err := r.Masters.Links(cell.Nodes)
	if err != nil {
		return nil, err
	}
	addrs := make([]string, len(links))
	for i, l := range links {
		addrs[i] = l.Addr()
	}
	return addrs, nil
}

// path prepares a cell's links.
func (r *Runner) path(cell Cell) (p path, err error) {
	if !cell.Linked {
		return p, nil
	}
	if p.links, err = r.Masters.Links(cell.Nodes); err != nil {
		return p, err
	}
	// The last masters have the fault; all masters are equal.
	healthy := cell.Nodes - cell.Hung - cell.Refused
	p.hung = p.links[healthy : healthy+cell.Hung]
	p.refused = p.links[healthy+cell.Hung:]
	delay, err := r.delay(p.links[0], cell.RTT)
	if err != nil {
		return p, err
	}
	for _, l := range p.links {
		// The whole delay is in one direction: the timer that holds bytes back varies, and
		// this way only once in a round trip.
		l.Delay(delay)
	}
	return p, nil
}

func (p path) any() bool { return len(p.hung)+len(p.refused) > 0 }

// begin starts the fault, for existing connections too.
func (p path) begin() error {
	for _, l := range p.hung {
		l.Stall()
	}
	for _, l := range p.refused {
		l.Refuse()
		l.Break()
	}
	return nil
}

// end removes the fault and the delay.
func (p path) end() error {
	var errs []error
	for _, l := range p.links {
		l.Delay(0)
	}
	for _, l := range p.hung {
		l.Resume()
	}
	for _, l := range p.refused {
		errs = append(errs, l.Accept())
	}
	return errors.Join(errs...)
}
