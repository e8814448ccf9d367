package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/history"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
)

// checkTold finds words of clients that fit nothing the nodes said. A success needs
// a majority of nodes that granted it between the call and its return: a node's word
// cannot arrive before it is said. ErrNotHeld needs so many nodes which have refused
// the lock since it was granted, or never had it, that the rest is no majority. And
// Until never moves back.
//
// What votes of an acquisition in vain, and of Do, belong to is not known, so these
// are not judged.
func (w *world) checkTold(events []history.Event) (found []history.Violation) {
	type id struct{ client, op int }
	type words struct {
		granted, refused map[string]map[int]time.Duration // by verb and node, when it last said so
	}
	said := map[id]words{}
	called := map[id]map[string]time.Duration{}
	until := map[id]time.Duration{}
	n := w.plan.Nodes

	since := func(at map[int]time.Duration, from time.Duration) (nodes int) {
		for _, t := range at {
			if t >= from {
				nodes++
			}
		}
		return nodes
	}
	for _, e := range events {
		at := id{e.Client, e.Op}
		if called[at] == nil {
			called[at] = map[string]time.Duration{}
			said[at] = words{map[string]map[int]time.Duration{}, map[string]map[int]time.Duration{}}
		}
		wrong := func(format string, args ...any) {
			found = append(found, history.Violation{
				At: e.At, Rule: Told, Key: e.Key,
				Text: fmt.Sprintf("client %d's lock #%d %s", e.Client, e.Op, fmt.Sprintf(format, args...)),
			})
		}
		judge := func(verb string) {
			votes := since(said[at].granted[verb], called[at][verb])
			if e.Err == "" && votes < quorum.Size(n) {
				wrong("is said to %s, which %d of %d nodes had granted", verb, votes, n)
			}
		}
		switch e.Kind {
		case history.Voted:
			verb, word, _ := strings.Cut(e.Text, " ")
			of := said[at].granted
			if strings.HasPrefix(word, "refused") {
				of = said[at].refused
			} else if word != "granted" {
				continue
			}
			if of[verb] == nil {
				of[verb] = map[int]time.Duration{}
			}
			of[verb][e.Node] = e.At
		case history.Asked:
			called[at]["acquire"] = e.At
		case history.Extending:
			called[at]["extend"] = e.At
		case history.Releasing:
			called[at]["release"] = e.At
		case history.Granted:
			if e.Until > e.At+1 { // not Do's
				judge("acquire")
			}
		case history.Extended:
			judge("extend")
		case history.Released:
			if _, known := until[at]; known {
				judge("release")
			}
		}
		switch e.Kind {
		case history.Released, history.NotExtended, history.Ended:
			_, known := until[at]
			refused := map[int]bool{}
			for node := 1; node <= n; node++ {
				_, granted := said[at].granted["acquire"][node]
				_, gone := said[at].refused["extend"][node]
				_, gone2 := said[at].refused["release"][node]
				if !granted || gone || gone2 {
					refused[node] = true
				}
			}
			if known && strings.Contains(e.Err, redlock.ErrNotHeld.Error()) && len(refused) <= n-quorum.Size(n) {
				wrong("is said to be lost, of which %d of %d nodes had refused to hear or never heard", len(refused), n)
			}
		}
		switch e.Kind {
		case history.Granted, history.Extended, history.Releasing, history.Ended:
			if e.Kind == history.Granted && e.Until <= e.At+1 {
				continue
			}
			if last, known := until[at]; (known || e.Kind == history.Granted) && e.Until+time.Microsecond < last {
				wrong("has an Until that moved back by %v", last-e.Until)
			} else if known || e.Kind == history.Granted {
				until[at] = max(last, e.Until)
			}
		}
	}
	return found
}
