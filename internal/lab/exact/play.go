package exact

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/lab/scenario"
	"github.com/quorumlock/redlock/internal/lab/scene"
)

// Played is what happened in a scenario until its end.
type Played struct {
	Events     []history.Event // in the order of [history.Log.Events]
	Violations []Violation
}

// Violation is a violation, and when it was found.
type Violation struct {
	scene.Violation
	At time.Duration
}

// Play plays a scenario to its end, which is [scenario.Scenario.End]. It returns an error if ctx ends, or
// if the simulation crashes. What it returns is, event for event, what the page of the lab shows.
func (l *Lab) Play(ctx context.Context, s scenario.Scenario) (played Played, err error) {
	end := s.End()
	settings := s // the actions come one by one, as on the page
	settings.Actions, settings.Until = nil, 0
	p, err := l.start(settings.String(), func(line []byte) error { return played.read(line, end) })
	if err != nil {
		return Played{}, err
	}
	defer p.stop()
	todo := s.Actions
	for at := time.Duration(0); at < end; at += scenario.Tick {
		if ctx.Err() != nil {
			return Played{}, context.Cause(ctx)
		}
		var now []string
		for len(todo) > 0 && todo[0].At <= at {
			now = append(now, todo[0].String())
			todo = todo[1:]
		}
		on, err := p.call("advance", strings.Join(now, ","))
		if err == nil && on != 1 {
			err = fmt.Errorf("the scenario ended before its end, at %v", at)
		}
		if err != nil {
			return Played{}, err
		}
	}
	history.Sort(played.Events)
	return played, nil
}

// read adds what a line says, unless it is of later than end.
func (p *Played) read(line []byte, end time.Duration) error {
	var head struct {
		At   time.Duration
		Kind string
	}
	if err := json.Unmarshal(line, &head); err != nil || head.At > end {
		return err
	}
	switch head.Kind {
	case "event":
		var e scene.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		p.Events = append(p.Events, e.Event)
	case "violation":
		v := Violation{At: head.At}
		if err := json.Unmarshal(line, &v.Violation); err != nil {
			return err
		}
		p.Violations = append(p.Violations, v)
	}
	return nil
}

// Rules returns the broken rules in the order in which they were broken.
func (p Played) Rules() (rules []string) {
	for _, v := range p.Violations {
		if !slices.Contains(rules, v.Rule) {
			rules = append(rules, v.Rule)
		}
	}
	return rules
}
