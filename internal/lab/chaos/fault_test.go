//go:build linux

package chaos

import (
	"context"
	"errors"
	"slices"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// A kind of fault strikes masters, wires or clients; exactly one of the three functions is
// set. Each returns when the fault is over: after its time, or at the end of the storm.
type kind struct {
	name   string
	weight int // how often, relative to the others
	master func(*storm, *master, draw) error
	wire   func(*storm, *wire, draw) error
	client func(*storm, *seat, draw) error
}

var kinds = []kind{
	{name: crashes, weight: 12, master: crash},
	{name: forgets, weight: 6, master: forget},
	{name: "hang", weight: 12, master: stop},
	{name: "flush scripts", weight: 5, master: flushScripts},
	{name: "stall", weight: 12, wire: stall},
	{name: "refuse", weight: 10, wire: refuse},
	{name: "delay requests", weight: 10, wire: delayRequests},
	{name: "delay replies", weight: 12, wire: delayReplies},
	{name: "cut replies", weight: 8, wire: cutReplies},
	{name: "break", weight: 6, wire: breakOff},
	{name: "pause client", weight: 6, client: pauseClient},
	{name: "kill client", weight: 6, client: killClient},
}

// Kinds of faults that not every storm has.
const (
	crashes = "crash"
	forgets = "crash and forget"
)

// amnesia is more than Redlock tolerates without the restart guard. It is not drawn with the
// others, but at its own pace.
var amnesia = kind{name: "amnesia", master: forgetAtOnce}

func kindOf(name string) *kind {
	return &kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
}

// kindsBut returns the kinds of faults without those of the names.
func kindsBut(names ...string) []kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return slices.Contains(names, k.name) })
}

// crash kills a master and restarts it with its memory.
func crash(s *storm, m *master, d draw) error {
	m.Kill()
	wait(s.ctx, d.lasts)
	return m.Restart()
}

// forget kills a master and restarts it without its memory, after every key that it had has
// expired, as docs/safety.md demands. The end of the storm does not shorten that.
func forget(_ *storm, m *master, _ draw) error {
	m.Kill()
	wait(context.Background(), longestTTL)
	return m.forgotten()
}

// forgetAtOnce kills a master and restarts it at once without its memory, while clients rely
// on it.
func forgetAtOnce(_ *storm, m *master, _ draw) error {
	m.Kill()
	return m.forgotten()
}

func stop(s *storm, m *master, d draw) error {
	if err := m.Pause(); err != nil {
		return err
	}
	wait(s.ctx, d.lasts)
	return m.Resume()
}

// flushScripts makes the next command by hash fail.
func flushScripts(_ *storm, m *master, _ draw) error {
	return m.admin.ScriptFlush(context.Background()).Err()
}

func stall(s *storm, w *wire, d draw) error {
	w.Stall()
	wait(s.ctx, d.lasts)
	if d.lose {
		w.Break()
	}
	w.Resume()
	return nil
}

func refuse(s *storm, w *wire, d draw) error {
	w.Refuse()
	w.Break()
	wait(s.ctx, d.lasts)
	return w.Accept()
}

func delayRequests(s *storm, w *wire, d draw) error {
	w.Delay(d.delay)
	wait(s.ctx, d.lasts)
	w.Delay(0)
	return nil
}

func delayReplies(s *storm, w *wire, d draw) error {
	w.DelayReplies(d.delay)
	wait(s.ctx, d.lasts)
	w.DelayReplies(0)
	return nil
}

func cutReplies(s *storm, w *wire, d draw) error {
	w.CutReplies(d.cuts)
	wait(s.ctx, d.lasts)
	w.CutReplies(0)
	return nil
}

func breakOff(_ *storm, w *wire, _ draw) error {
	w.Break()
	return nil
}

// pauseClient stops a client until all its locks have ended.
func pauseClient(s *storm, p *seat, d draw) error {
	tell := func(kind history.Kind) {
		s.log.Add(history.Event{At: s.clock.now(), Kind: kind, Client: p.member.number})
	}
	tell(history.Paused)
	p.member.pause()
	wait(s.ctx, longestTTL+d.lasts)
	p.member.resume()
	tell(history.Resumed)
	return nil
}

// killClient kills a client and starts a new one in its place.
func killClient(s *storm, p *seat, d draw) error {
	err := p.member.kill()
	// Recorded after the client's last event: the dead client releases none of its locks.
	s.log.Add(history.Event{At: s.clock.now(), Kind: history.Died, Client: p.member.number})
	wait(s.ctx, d.lasts/4)
	return errors.Join(err, s.seatClient(p, 0))
}
