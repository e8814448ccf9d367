package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
)

// checkTold finds results of operations that do not fit the nodes' answers:
//
//   - A success needs grants by a majority of nodes between the call and its return. A lock
//     with a token needs grants of that very token. Grants of a node that restarted within
//     the restart guard do not count, except those of a release: the node did delete the
//     key.
//   - With ErrNotHeld, the nodes that have granted the lock and not refused it since are no
//     majority.
//   - Until never moves back.
//
// It does not judge failed acquisitions and Do, as it is not known which votes belong to
// them.
func (w *world) checkTold(events []history.Event) (found []history.Violation) {
	type id struct{ client, op int }
	type ask struct {
		verb  string
		token int64
	}
	type words struct {
		granted, refused map[string]map[int]time.Duration // by verb and node: when the node last answered so
		counted          map[ask]map[int]time.Duration    // the grants that count
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
			said[at] = words{map[string]map[int]time.Duration{}, map[string]map[int]time.Duration{}, map[ask]map[int]time.Duration{}}
		}
		wrong := func(format string, args ...any) {
			found = append(found, history.Violation{
				At: e.At, Rule: Told, Key: e.Key,
				Text: fmt.Sprintf("client %d's lock #%d %s", e.Client, e.Op, fmt.Sprintf(format, args...)),
			})
		}
		judge := func(verb string, token int64) {
			votes := since(said[at].counted[ask{verb, token}], called[at][verb])
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
			if word == "granted" && (verb == "release" || !w.plan.young(w.plan.home(w.plan.serverOf(e)), e.At)) {
				what := ask{verb, e.Token}
				if verb != "acquire" {
					what.token = 0
				}
				if said[at].counted[what] == nil {
					said[at].counted[what] = map[int]time.Duration{}
				}
				said[at].counted[what][w.plan.serverOf(e)] = e.At
			}
		case history.Asked:
			called[at]["acquire"], called[at]["extend"] = e.At, e.At
		case history.Extending:
			called[at]["extend"] = e.At
		case history.Releasing:
			called[at]["release"], called[at]["retain"] = e.At, e.At
		case history.Retained:
			judge("retain", 0)
		case history.Granted:
			if e.Text == history.ByHandle {
				judge("extend", 0)
			} else if e.Until > e.At+1 { // not of a Do
				judge("acquire", e.Token)
			}
		case history.Extended:
			judge("extend", 0)
		case history.Released:
			if _, known := until[at]; known {
				judge("release", 0)
			}
		}
		switch e.Kind {
		case history.Released, history.NotExtended, history.Ended:
			_, known := until[at]
			refused := map[int]bool{}
			for node := 1; node <= n; node++ {
				_, granted := said[at].granted["acquire"][node]
				gone := slices.ContainsFunc([]string{"extend", "release", "retain"}, func(verb string) bool {
					_, gone := said[at].refused[verb][node]
					return gone
				})
				if !granted || gone {
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

// young reports whether the restart guard keeps the node's votes from counting because its
// server restarted. They count sooner if the server's clock was set ahead since.
func (p Plan) young(node int, at time.Duration) bool {
	var up, ahead time.Duration // when the server began, if it has, and how far its clock is ahead
	restarted := false
	for i, f := range p.Faults {
		if f.Node != node || slices.Contains(p.Config.Without, i+1) {
			continue
		}
		begins := f.At + f.For
		switch f.Kind {
		case Excursion, Spare, Deposed, DeposedLong:
			begins = f.At
		case Crash, Amnesia, AmnesiaOK, FailOver, EmptyPromotion:
		default:
			continue
		}
		if begins <= at && begins > up {
			up, restarted = begins, slices.Contains([]Kind{Crash, Amnesia, AmnesiaOK}, f.Kind)
		}
	}
	for i, f := range p.Faults {
		if f.Node == node && f.Kind == JumpAhead && up <= f.At && f.At <= at && !slices.Contains(p.Config.Without, i+1) {
			ahead += f.For
		}
	}
	return restarted && at+ahead < up+p.Guard
}
