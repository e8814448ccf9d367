package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// Progress is the rule of trials. While a majority answers a client in time and the key
// becomes free, that client gets its turn, whatever other clients suffer:
//
//   - While a client that is well waits, the key is without a holder for no longer than the
//     gap of the trial's kind.
//   - No client that is well waits for longer than a gap for each client of the trial that
//     can win: each of those may be ahead of it, and each hand-over may take a gap.
//   - The key has at least half of the holders that it had in the control. A trial with an
//     able but slow client is exempt, as that client's turns take long.
//   - Where all are well and only clocks differ, each client has at least half of the mean
//     of turns.
//
// Foreign clients wake nobody. Beside them a client is compared with itself when it polls:
// it has at least foreignShare of the turns, and its longest wait is at most foreignWait
// times as long. A wait may always take foreignLook: a waiter finds out about foreign
// clients only when it looks, which it does after a second.
const Progress = "progress"

const (
	foreignShare = 0.7
	foreignWait  = 2
	foreignLook  = 2 * time.Second
)

// gap returns for how long the key may be without a holder while a client that is well
// waits; docs/safety.md explains the delays. The sick delay nobody else, except for the
// queue entries of frozen clients: a waiter that has waited for a second looks within
// another one. Then the first frozen client, the next four, and the others each have a
// second to come.
func (k Kind) gap() time.Duration {
	switch k {
	case Frozen:
		return 5 * time.Second
	case DaysApart:
		return time.Second
	}
	return 2 * time.Second
}

// sequence is what happened in one part of a trial.
type sequence struct {
	turns   map[int]int           // by client
	longest map[int]time.Duration // the longest wait of each client, ended or not
	gap     time.Duration         // the longest time without a holder while a client that is well waited
	gapAt   time.Duration         // when that time began
}

func (s sequence) total() (n int) {
	for _, turns := range s.turns {
		n += turns
	}
	return n
}

// follows reads one part of a trial. A wait begins when a client first asks after its last
// turn, so that polling counts as waiting.
func (p Plan) follows(events []history.Event, of part) sequence {
	s := sequence{turns: map[int]int{}, longest: map[int]time.Duration{}}
	ends := map[opID]time.Duration{}
	for _, l := range history.Locks(events) {
		ends[opID{l.Client, l.Op}] = l.End()
	}
	asked := map[int]time.Duration{} // when each client that waits began to
	free := of.from                  // since when the key has no holder, as far as is known
	waited := func(client int, at time.Duration) {
		s.longest[client] = max(s.longest[client], at-asked[client])
	}
	stood := func(at time.Duration) {
		since := time.Duration(math.MaxInt64)
		for client, began := range asked {
			if p.well(client) {
				since = min(since, began)
			}
		}
		if since = max(since, free); at-since > s.gap && at > since {
			s.gap, s.gapAt = at-since, since
		}
	}
	for _, e := range events {
		if e.Key != of.key || e.At < of.from || e.At > of.to {
			continue
		}
		switch e.Kind {
		case history.Asked:
			if _, waits := asked[e.Client]; !waits {
				asked[e.Client] = e.At
			}
		case history.Granted:
			stood(e.At)
			waited(e.Client, e.At)
			delete(asked, e.Client)
			s.turns[e.Client]++
			free = max(free, ends[opID{e.Client, e.Op}])
		}
	}
	stood(of.to)
	for client := range asked {
		waited(client, of.to)
	}
	return s
}

// well reports whether a majority answers a client of the trial within its NodeTimeout.
func (p Plan) well(client int) bool {
	t := p.Trial
	return client-1-t.First < t.Well || t.Kind == DaysApart || t.Able
}

// checkProgress judges the trial by Progress.
func (p Plan) checkProgress(events []history.Event, parts [2]part) (found []history.Violation) {
	t := p.Trial
	if t == nil || parts[1].to == 0 {
		return nil
	}
	wrong := func(at time.Duration, format string, args ...any) {
		found = append(found, history.Violation{At: at, Rule: Progress, Key: parts[1].key, Text: fmt.Sprintf("in a trial, %v, ", t) + fmt.Sprintf(format, args...)})
	}
	control, trial := p.follows(events, parts[0]), p.follows(events, parts[1])
	at := parts[1].to
	if t.Kind == Foreign {
		for client := t.First + 1; client <= t.First+t.Well; client++ {
			polls, waits := control.turns[client], trial.turns[client]
			if float64(waits) < foreignShare*float64(polls) {
				wrong(at, "client %d had %d turns, and %d when it polled", client, waits, polls)
			}
			if most := max(foreignWait*control.longest[client], foreignLook); trial.longest[client] > most {
				wrong(at, "client %d waited for %v, and for at most %v when it polled", client, trial.longest[client], control.longest[client])
			}
		}
		return found
	}
	if trial.gap > t.Kind.gap() {
		wrong(trial.gapAt+t.Kind.gap(), "nobody got the key for %v from %v on", trial.gap, trial.gapAt)
	}
	able := 0
	for client := t.First + 1; client <= len(p.Clients); client++ {
		if p.well(client) {
			able++
		}
	}
	if t.Kind == Frozen {
		able = len(p.Clients) - t.First
	}
	most := time.Duration(able) * t.Kind.gap()
	for client := t.First + 1; client <= len(p.Clients); client++ {
		if p.well(client) && trial.longest[client] > most {
			wrong(at, "client %d waited for %v", client, trial.longest[client])
		}
		if mean := trial.total() / able; t.Kind == DaysApart && trial.turns[client] < mean/2 {
			wrong(at, "client %d had %d turns, and the mean was %d", client, trial.turns[client], mean)
		}
	}
	if had, got := control.total(), trial.total(); !t.Able && got < had/2 {
		wrong(at, "there were %d turns, and %d in the control", got, had)
	}
	return found
}
