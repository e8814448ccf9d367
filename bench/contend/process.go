package contend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/quorumlock/redlock/bench/child"
	"github.com/quorumlock/redlock/bench/result"
	"github.com/quorumlock/redlock/bench/subject"
)

// Plan is a contender in its own process.
type Plan struct {
	Subject result.Subject
	Addrs   []string
	Turn    Turn
	Name    string // its own key, which no other contender wants
	File    File   // the proof
	Alone   bool   // whether it measures a cycle before the others contend
}

// contended is what a child sends after it has contended.
type contended struct {
	Log      Log
	Commands int64 // sent in the window
}

// Processes makes a turn of n contenders, each in its own process: this program, started with
// flag and a plan, which must then call [Child]. The contenders know only what the lock tells
// them. With a file they check that no other contender is inside.
func Processes(ctx context.Context, flag string, n int, p Plan) (*Outcome, error) {
	dir, err := os.MkdirTemp("", "redlock-contend-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p.File = File(filepath.Join(dir, "inside"))
	ctx, cancel := context.WithTimeout(ctx, p.Turn.Warm+p.Turn.For+3*stuck)
	defer cancel()

	var all []*child.Process
	end := func() error {
		var errs []error
		for _, c := range all {
			errs = append(errs, c.End())
		}
		all = nil
		return errors.Join(errs...)
	}
	defer func() { _ = end() }()
	for i := range n {
		p.Name, p.Alone = fmt.Sprintf("%s:%d", p.Turn.Key, i), i == n-1
		if p.Alone { // the last, when the others have started
			if err := hear(all, nil); err != nil {
				return nil, err
			}
		}
		c, err := child.Start(ctx, flag, p)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	var alone time.Duration
	if err := all[n-1].Hear(&alone); err != nil {
		return nil, err
	}
	begin := time.Now().Round(0).Add(p.Turn.Warm) // by the wall clock, which all processes share
	w := Window{begin, begin.Add(p.Turn.For)}
	for _, c := range all {
		if err := c.Tell(w); err != nil {
			return nil, err
		}
	}
	found := make([]contended, n)
	if err := hear(all, found); err != nil {
		return nil, err
	}
	logs := make([]Log, n)
	commands := int64(0)
	for i, f := range found {
		logs[i] = f.Log
		commands += f.Commands
	}
	o := Sum(logs, w.Begin, w.End)
	o.Alone, o.Commands = alone, commands
	return o, end()
}

// hear waits for the next value of each child.
func hear(all []*child.Process, found []contended) error {
	for i, c := range all {
		var said any
		if found != nil {
			said = &found[i]
		}
		if err := c.Hear(said); err != nil {
			return err
		}
	}
	return nil
}

// Child is the process of one contender.
func Child(ctx context.Context, p Plan, parent *child.Pipe) error {
	spec, err := subject.Of(p.Subject)
	if err != nil {
		return err
	}
	sent := new(subject.Sent)
	locker, err := spec.Wait(subject.Target{Addrs: p.Addrs, Callers: 1, Sent: sent})
	if err != nil {
		return err
	}
	defer func() { _ = locker.Close() }()
	all := []Contender{{locker.Caller(), p.Name}}
	if err := arrive(ctx, all); err != nil {
		return err
	}
	var alone time.Duration
	if p.Alone {
		if alone, err = Alone(ctx, all[0].Caller, p.Turn.Key); err != nil {
			return err
		}
	}
	if err := parent.Say(alone); err != nil {
		return err
	}
	var w Window
	if err := parent.Hear(ctx, &w); err != nil {
		return err
	}
	logs, commands, err := w.contend(ctx, all, p.File, sent, p.Turn)
	if err != nil {
		return err
	}
	return parent.Say(contended{logs[0], commands})
}
