// Package scenario describes runs of the fault lab in which a person decides what happens: the settings
// of the masters and clients, and actions at given times. A scenario is written as the query of a web
// address, so that a link or a command line repeats it.
package scenario

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Tick is the step of virtual time at which actions can happen.
const Tick = 2 * time.Millisecond

// Scenario is a run of which a person decides what happens.
type Scenario struct {
	Seed    uint64        // from which latencies, values and the times of clients that work by themselves are drawn
	Nodes   int           // masters
	Clients int           // clients
	TTL     time.Duration // of all locks
	Timeout time.Duration // NodeTimeout of all clients
	Latency time.Duration // of the links, in one direction: from a half of this to three halves of it
	Fencing bool
	Guard   bool // RestartGuard is TTL
	Fair    bool
	Draw    bool // clients work by themselves, and the seed draws faults
	Slots   int  // if not 0: instead of the lock, a naive semaphore with so many slots
	Actions []Action
	Until   time.Duration // where to stop; 0: nowhere in particular
}

// Default returns the scenario of an empty query.
func Default() Scenario {
	return Scenario{Seed: 1, Nodes: 5, Clients: 3, TTL: 5 * time.Second, Timeout: 400 * time.Millisecond, Latency: 40 * time.Millisecond}
}

const (
	maxNodes   = 9
	maxClients = 9
	maxSlots   = 9
	// MaxUntil bounds the virtual time of a scenario. A scenario of this length takes minutes.
	MaxUntil = 10 * time.Minute
)

// Parse reads a query, such as "nodes=3&do=100-kill-m1". What it leaves out has the value of [Default].
// The error names the field that is wrong.
func Parse(query string) (Scenario, error) {
	s := Default()
	values, err := url.ParseQuery(query)
	if err != nil {
		return s, fmt.Errorf("the query is not written as in a web address: %w", err)
	}
	p := parser{values: values}
	p.seed(&s.Seed)
	p.number("nodes", &s.Nodes, 1, maxNodes)
	p.number("clients", &s.Clients, 1, maxClients)
	p.number("slots", &s.Slots, 0, maxSlots)
	p.duration("ttl", &s.TTL, 100*time.Millisecond, time.Minute)
	p.duration("timeout", &s.Timeout, 10*time.Millisecond, 5*time.Second)
	p.duration("latency", &s.Latency, 0, time.Second)
	p.onOff("fencing", &s.Fencing)
	p.onOff("guard", &s.Guard)
	p.onOff("fair", &s.Fair)
	p.onOff("draw", &s.Draw)
	until := 0
	p.number("until", &until, 0, int(MaxUntil.Milliseconds()))
	s.Until = time.Duration(until) * time.Millisecond
	if list, given := p.take("do"); given && p.err == nil {
		s.Actions, p.err = parseTimed(list, s)
	}
	return s, p.rest()
}

// String returns the query of the scenario. Parse reads it back.
func (s Scenario) String() string {
	d := Default()
	var q []string
	add := func(name, value string, isDefault bool) {
		if !isDefault {
			q = append(q, name+"="+value)
		}
	}
	add("seed", strconv.FormatUint(s.Seed, 10), s.Seed == d.Seed)
	add("nodes", strconv.Itoa(s.Nodes), s.Nodes == d.Nodes)
	add("clients", strconv.Itoa(s.Clients), s.Clients == d.Clients)
	add("ttl", s.TTL.String(), s.TTL == d.TTL)
	add("timeout", s.Timeout.String(), s.Timeout == d.Timeout)
	add("latency", s.Latency.String(), s.Latency == d.Latency)
	add("fencing", "1", !s.Fencing)
	add("guard", "1", !s.Guard)
	add("fair", "1", !s.Fair)
	add("draw", "1", !s.Draw)
	add("slots", strconv.Itoa(s.Slots), s.Slots == 0)
	if len(s.Actions) > 0 {
		timed := make([]string, len(s.Actions))
		for i, a := range s.Actions {
			timed[i] = fmt.Sprintf("%d-%s", a.At.Milliseconds(), a)
		}
		add("do", strings.Join(timed, ","), false)
	}
	add("until", strconv.FormatInt(s.Until.Milliseconds(), 10), s.Until == 0)
	return strings.Join(q, "&")
}

// End returns when a run that nobody watches stops: at Until, or 10 s after the last action.
func (s Scenario) End() time.Duration {
	if s.Until > 0 {
		return s.Until
	}
	last := time.Duration(0)
	if s.Draw {
		last = drawnFor
	}
	if n := len(s.Actions); n > 0 {
		last = max(last, s.Actions[n-1].At)
	}
	return last + 10*time.Second
}

// Quorum returns how many masters are a majority.
func (s Scenario) Quorum() int { return s.Nodes/2 + 1 }

// parser reads the fields of a query, and keeps the first error.
type parser struct {
	values url.Values
	err    error
}

// take removes a field, and returns its value.
func (p *parser) take(name string) (value string, given bool) {
	all, given := p.values[name]
	delete(p.values, name)
	if len(all) > 1 && p.err == nil {
		p.err = fmt.Errorf("%s is given %d times, want it once", name, len(all))
	}
	if !given {
		return "", false
	}
	return all[0], true
}

func (p *parser) fail(name, value, want string) {
	if p.err == nil {
		p.err = fmt.Errorf("%s is %q, want %s", name, value, want)
	}
}

func (p *parser) seed(to *uint64) {
	value, given := p.take("seed")
	if !given {
		return
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		p.fail("seed", value, "a number from 0 to 18446744073709551615")
		return
	}
	*to = n
}

func (p *parser) number(name string, to *int, from, most int) {
	value, given := p.take(name)
	if !given {
		return
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < from || n > most {
		p.fail(name, value, fmt.Sprintf("a number from %d to %d", from, most))
		return
	}
	*to = n
}

func (p *parser) duration(name string, to *time.Duration, from, most time.Duration) {
	value, given := p.take(name)
	if !given {
		return
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < from || d > most || d%time.Millisecond != 0 {
		p.fail(name, value, fmt.Sprintf("a duration from %v to %v in whole milliseconds, such as 500ms", from, most))
		return
	}
	*to = d
}

func (p *parser) onOff(name string, to *bool) {
	value, given := p.take(name)
	switch {
	case !given:
	case value == "1" || value == "0":
		*to = value == "1"
	default:
		p.fail(name, value, "1 or 0")
	}
}

// rest returns the first error. A field that nobody took is one.
func (p *parser) rest() error {
	if p.err != nil || len(p.values) == 0 {
		return p.err
	}
	var unknown []string
	for name := range p.values {
		unknown = append(unknown, name)
	}
	return fmt.Errorf("%s is no field of a scenario", slices.Min(unknown))
}
