package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/redlock/bench/contend"
	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
)

const (
	healthy = 3 // clients beside the sick one
	// grip is how long each of them holds the key. It wants the key again at once.
	grip = 2 * time.Millisecond
	// near and far are the shortest and the longest delay, each way, of the links of a distant
	// client.
	near, far = 110 * time.Millisecond, 200 * time.Millisecond
	// patient is the NodeTimeout of a client that is as distant and can win.
	patient = time.Second
	// warm is how long the healthy clients run before the sick one starts.
	warm = time.Second
)

// sickCase is one kind of client that cannot win.
type sickCase struct {
	name    string
	masters int
	down    int  // masters that no client reaches
	reach   int  // masters that the sick client reaches; 0: all, over slow links
	silent  bool // masters out of its reach are silent; otherwise they refuse
	fair    bool
}

var sickCases = []sickCase{
	{name: "slow-5", masters: 5},
	{name: "slow-5-fair", masters: 5, fair: true},
	{name: "slow-1", masters: 1},
	{name: "slow-1-fair", masters: 1, fair: true},
	{name: "minority-2-of-5", masters: 5, reach: 2},
	{name: "minority-2-of-5-silent", masters: 5, reach: 2, silent: true},
	{name: "minority-2-of-5-one-down", masters: 5, down: 1, reach: 2},
	{name: "minority-2-of-5-one-down-fair", masters: 5, down: 1, reach: 2, fair: true},
	{name: "minority-1-of-3-one-down", masters: 3, down: 1, reach: 1},
	{name: "minority-2-of-4", masters: 4, reach: 2},
	{name: "minority-1-of-2", masters: 2, reach: 1},
}

// sick measures three clients alone, then with a fourth that cannot win, and then with one
// that can win on the same links.
func sick(ctx context.Context, o options) error {
	t := newTable(o.out, "One client that cannot win",
		fmt.Sprintf("%d clients want one key, hold it for %v, and want it again at once. A fourth comes whose links take %v to %v each way, with the default NodeTimeout of 200 ms; or which reaches only some of the masters. *With* is measured for %v from its arrival, *alone* for as long without it. *Can win* is a fourth on the same slow links with a NodeTimeout of %v; of one that reached a minority, the same client once it reaches all masters.",
			healthy, grip, near, far, o.last, patient),
		"the fourth client", "locks/s alone", "with", "ratio", "longest gap alone", "with", "its locks", "its locks where it can win", "longest gap then")
	var errs []error
	for _, c := range sickCases {
		if !o.wants("sick/" + c.name) {
			continue
		}
		progress("sick/%s", c.name)
		if err := c.measure(ctx, o, t); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	t.end()
	return errors.Join(append(errs, ctx.Err())...)
}

// scene holds the masters of a case, and the sick client's links to them.
type scene struct {
	sickCase
	servers []*redisserver.Server
	links   []*redisserver.Link
}

// figures are the figures of one run of the clients.
type figures struct {
	perSecond float64
	gap       time.Duration
	theirs    int      // locks of the fourth
	whole     *figures // after the links of a fourth that reached a minority are repaired
}

func (c sickCase) measure(ctx context.Context, o options, t *table) error {
	s := scene{sickCase: c}
	var err error
	if s.servers, err = redisserver.Launch(c.masters); err != nil {
		return err
	}
	defer stopAll(s.servers)
	for _, server := range s.servers {
		l, err := redisserver.OpenLink(server.Addr())
		if err != nil {
			return err
		}
		defer l.Close()
		s.links = append(s.links, l)
	}
	for _, server := range s.servers[c.masters-c.down:] {
		server.Kill()
	}
	alone, err := s.run(ctx, o.last, "alone", nil)
	if err != nil {
		return err
	}
	if err := s.damage(); err != nil {
		return err
	}
	with, err := s.run(ctx, o.last, "with", &redlock.Config{Fair: c.fair})
	if err != nil {
		return err
	}
	can := with.whole
	if c.reach == 0 {
		found, err := s.run(ctx, o.last, "can", &redlock.Config{Fair: c.fair, NodeTimeout: patient})
		if err != nil {
			return err
		}
		can = &found
	}
	t.row(c.String(), alone.perSecond, with.perSecond, with.perSecond/alone.perSecond,
		alone.gap, with.gap, with.theirs, can.theirs, can.gap)
	return nil
}

// run makes the healthy clients contend for a key, with a fourth if there is a Config for it.
func (s scene) run(ctx context.Context, d time.Duration, key string, fourth *redlock.Config) (f figures, err error) {
	var all []*redlock.Redlock
	defer func() {
		// A client that waits for its slow links would take long to close.
		for _, l := range s.links {
			l.Delay(0)
			l.DelayReplies(0)
		}
		err = errors.Join(err, closeAll(all))
		if s.reach == 0 {
			s.slow()
		}
	}()
	at, ours, theirs := new(place), new(tally), new(tally)
	newContender := func(addrs []string, cfg redlock.Config, t *tally) (*contender, error) {
		r, err := open(addrs, cfg)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
		return &contender{take: acquires(r, key), hold: grip, tally: t, key: at}, nil
	}
	var contenders []*contender
	for range healthy {
		c, err := newContender(addresses(s.servers), redlock.Config{Fair: s.fair}, ours)
		if err != nil {
			return f, err
		}
		contenders = append(contenders, c)
	}
	stop := start(ctx, contenders...)
	contend.Pause(ctx, warm)
	from := time.Now()
	leave := func() {}
	if fourth != nil {
		var addrs []string
		for _, l := range s.links {
			addrs = append(addrs, l.Addr())
		}
		c, err := newContender(addrs, *fourth, theirs)
		if err != nil {
			stop()
			return f, err
		}
		leave = start(ctx, c)
	}
	period := func(from time.Time) figures {
		contend.Pause(ctx, d)
		to := time.Now()
		return figures{
			perSecond: float64(ours.count(from, to)) / to.Sub(from).Seconds(),
			gap:       gap(from, to, ours, theirs),
			theirs:    theirs.count(from, to),
		}
	}
	f = period(from)
	if fourth != nil && s.reach > 0 {
		err = s.repair()
		whole := period(time.Now())
		f.whole = &whole
	}
	leave()
	stop()
	return f, errors.Join(err, at.alone(), ctx.Err())
}

// damage sets up the links as the case demands.
func (s scene) damage() error {
	if s.reach == 0 {
		s.slow()
		return nil
	}
	for _, l := range s.links[s.reach:] {
		if s.silent {
			l.Stall()
			continue
		}
		l.Refuse()
		l.Break()
	}
	return nil
}

// slow spreads the links' delays from near to far.
func (s scene) slow() {
	for i, l := range s.links {
		d := (near + far) / 2
		if n := len(s.links); n > 1 {
			d = near + (far-near)*time.Duration(i)/time.Duration(n-1)
		}
		l.Delay(d)
		l.DelayReplies(d)
	}
}

// repair repairs the links that were cut.
func (s scene) repair() error {
	var errs []error
	for _, l := range s.links[s.reach:] {
		l.Resume()
		errs = append(errs, l.Accept())
	}
	return errors.Join(errs...)
}

func (c sickCase) String() string {
	text := fmt.Sprintf("%d masters", c.masters)
	if c.masters == 1 {
		text = "1 master"
	}
	if c.down > 0 {
		text += fmt.Sprintf(", %d down", c.down)
	}
	switch {
	case c.reach == 0:
		text += ", slow links"
	case c.silent:
		text += fmt.Sprintf(", reaches %d, the others are silent", c.reach)
	default:
		text += fmt.Sprintf(", reaches %d", c.reach)
	}
	if c.fair {
		text += ", Fair"
	}
	return text
}
