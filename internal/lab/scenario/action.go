package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Verb is what an action does.
type Verb string

// What can happen to a master.
const (
	Kill    Verb = "kill"    // it is down, and keeps its memory
	Restart Verb = "restart" // it is up again, with its memory
	Forget  Verb = "forget"  // it is up again, without its memory
	Hang    Verb = "hang"    // it stands still, as at SIGSTOP
	Resume  Verb = "resume"  // it goes on, as at SIGCONT
	Ahead   Verb = "ahead"   // its clock is set forward by Arg
	Back    Verb = "back"    // its clock is set back by Arg
)

// What can happen to the links between clients and masters.
const (
	Cut       Verb = "cut"       // nothing passes
	CutAsk    Verb = "cutask"    // requests do not pass
	CutAnswer Verb = "cutanswer" // replies do not pass
	Lose      Verb = "lose"      // requests are executed, and their replies and the connections are lost
	Slow      Verb = "slow"      // everything takes longer by Arg
	Heal      Verb = "heal"      // all of this is over
)

// What can happen to a client.
const (
	Pause    Verb = "pause"    // its process stands still, and its clock goes on
	Suspend  Verb = "suspend"  // its machine sleeps, and its clock stands still too
	Continue Verb = "continue" // either is over
	Die      Verb = "die"      // its process is killed
	Start    Verb = "start"    // a new process takes the place of a dead one
)

// What a client can do.
const (
	Acquire   Verb = "acquire" // it waits for the lock
	Try       Verb = "try"     // it tries once
	Release   Verb = "release"
	Extend    Verb = "extend"
	KeepAlive Verb = "keep"
	GiveUp    Verb = "giveup" // its caller stops waiting
	Write     Verb = "write"  // it works for a second, and writes to the protected resource
	Work      Verb = "work"   // it does all of that by itself, again and again
	Rest      Verb = "rest"   // it stops working by itself
)

// kind says what an action is about.
type kind uint8

const (
	ofMaster kind = iota + 1
	ofLinks
	ofClient
)

var kinds = map[Verb]kind{
	Kill: ofMaster, Restart: ofMaster, Forget: ofMaster, Hang: ofMaster, Resume: ofMaster, Ahead: ofMaster, Back: ofMaster,
	Cut: ofLinks, CutAsk: ofLinks, CutAnswer: ofLinks, Lose: ofLinks, Slow: ofLinks, Heal: ofLinks,
	Pause: ofClient, Suspend: ofClient, Continue: ofClient, Die: ofClient, Start: ofClient,
	Acquire: ofClient, Try: ofClient, Release: ofClient, Extend: ofClient, KeepAlive: ofClient, GiveUp: ofClient, Write: ofClient, Work: ofClient, Rest: ofClient,
}

// takesArg lists the verbs that have an argument.
var takesArg = []Verb{Ahead, Back, Slow}

// maxArg is the longest argument of an action.
const maxArg = time.Hour

// Action is something that is done to the masters, links and clients, or that a client does.
type Action struct {
	At     time.Duration // a multiple of Tick
	Verb   Verb
	Client int           // from 1; 0: none in particular
	Node   int           // from 1; 0: none in particular
	Arg    time.Duration // of Ahead, Back and Slow
}

// String returns the action without its time, as [ParseAction] reads it.
func (a Action) String() string {
	s := string(a.Verb)
	if a.Client > 0 {
		s += fmt.Sprintf("-c%d", a.Client)
	}
	if a.Node > 0 {
		s += fmt.Sprintf("-m%d", a.Node)
	}
	if slices.Contains(takesArg, a.Verb) {
		s += fmt.Sprintf("-%d", a.Arg.Milliseconds())
	}
	return s
}

// ParseActions reads actions without times, separated by commas.
func (s Scenario) ParseActions(list string) (actions []Action, err error) {
	if list == "" {
		return nil, nil
	}
	for word := range strings.SplitSeq(list, ",") {
		a, err := s.ParseAction(word)
		if err != nil {
			return nil, err
		}
		actions = append(actions, a)
	}
	return actions, nil
}

// ParseAction reads an action without its time, such as "kill-m1" or "slow-c1-m2-300".
func (s Scenario) ParseAction(word string) (a Action, err error) {
	parts := strings.Split(word, "-")
	a.Verb = Verb(parts[0])
	wrong := func(format string, args ...any) (Action, error) {
		return Action{}, fmt.Errorf("action %q: %s", word, fmt.Sprintf(format, args...))
	}
	k, known := kinds[a.Verb]
	if !known {
		return wrong("%q is nothing that can be done", parts[0])
	}
	parts = parts[1:]
	if slices.Contains(takesArg, a.Verb) {
		if len(parts) < 2 {
			return wrong("want a target and milliseconds")
		}
		last := parts[len(parts)-1]
		ms, err := strconv.Atoi(last)
		if err != nil || ms < 0 || ms > int(maxArg.Milliseconds()) {
			return wrong("%q is no number of milliseconds from 0 to %d", last, maxArg.Milliseconds())
		}
		a.Arg, parts = time.Duration(ms)*time.Millisecond, parts[:len(parts)-1]
	}
	for _, target := range parts {
		number, err := strconv.Atoi(target[min(1, len(target)):])
		switch {
		case err == nil && target[0] == 'c' && a.Client == 0 && a.Node == 0:
			if a.Client = number; number < 1 || number > s.Clients {
				return wrong("there is no client %d", number)
			}
		case err == nil && target[0] == 'm' && a.Node == 0:
			if a.Node = number; number < 1 || number > s.Nodes {
				return wrong("there is no master %d", number)
			}
		default:
			return wrong("%q is neither a client, such as c1, nor a master, such as m1", target)
		}
	}
	switch {
	case k == ofMaster && (a.Node == 0 || a.Client != 0):
		return wrong("want a master, such as m1")
	case k == ofClient && (a.Client == 0 || a.Node != 0):
		return wrong("want a client, such as c1")
	case k == ofLinks && a.Client == 0 && a.Node == 0:
		return wrong("want a link, such as c1-m1, or c1 or m1 for all of its links")
	}
	return a, nil
}

// parseTimed reads actions with their times in milliseconds, such as "100-kill-m1", in the order of time.
func parseTimed(list string, s Scenario) (actions []Action, err error) {
	last := time.Duration(0)
	for word := range strings.SplitSeq(list, ",") {
		if word == "" {
			continue
		}
		when, what, _ := strings.Cut(word, "-")
		ms, err := strconv.Atoi(when)
		at := time.Duration(ms) * time.Millisecond
		if err != nil || at < 0 || at > MaxUntil || at%Tick != 0 {
			return nil, fmt.Errorf("action %q: want it to begin with its time, an even number of milliseconds up to %d", word, MaxUntil.Milliseconds())
		}
		if at < last {
			return nil, fmt.Errorf("action %q: it comes after one at %d ms, want the actions in order", word, last.Milliseconds())
		}
		a, err := s.ParseAction(what)
		if err != nil {
			return nil, err
		}
		a.At, last = at, at
		actions = append(actions, a)
	}
	return actions, nil
}
