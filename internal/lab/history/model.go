package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// The model is a lock with an owner that expires: acquiring it takes a free or an expired
// lock, and only the owner extends or releases it with success. For each key the checker
// looks for an order of all operations that the model allows, in which each takes effect
// between its call and its return.
//
// A lock that was retained is never released, and expires when that time is over. A detached lock
// is released, and the lock that is resumed acquires it again.
//
// A release that failed, or never returned, may have had its effect or not: it frees the
// lock if it is still held. So does a client that closes. An acquisition that failed, or
// whose client died in it, hands out nothing, and a failed extension changes nothing that
// anybody may count on: they are left out.
//
// Where there is such an order, there must also be one in which each acquisition brings a
// higher fencing token than all before it.

type action uint8

const (
	acquire action = iota
	extend
	release
)

type request struct {
	action       action
	lock         Lock
	call, answer time.Duration
	failed       bool
}

// owner is the model's state.
type owner struct {
	client, op int // 0, 0: nobody
	until      time.Duration
	token      int64 // the last that was handed out
}

var (
	lockModel   = porcupine.Model{Init: unowned, Step: step, DescribeOperation: describe}
	fencedModel = porcupine.Model{Init: unowned, Step: fencedStep, DescribeOperation: describe}
)

func unowned() any { return owner{} }

func describe(input, _ any) string { return input.(request).String() }

func step(state, input, _ any) (bool, any) {
	now, r := state.(owner), input.(request)
	ours := now.client == r.lock.Client && now.op == r.lock.Op
	switch {
	case r.action == acquire:
		// The last hold must be over at the end of the acquisition at the latest.
		free := now.client == 0 || now.until <= r.answer
		return free, owner{client: r.lock.Client, op: r.lock.Op, until: r.lock.Until}
	case r.action == extend:
		return ours && now.until > r.call, now
	case ours:
		return true, owner{}
	}
	return r.failed, now
}

// fencedStep is step with tokens. It passes over a token that is not known.
func fencedStep(state, input, output any) (bool, any) {
	before, r := state.(owner), input.(request)
	ok, after := step(owner{client: before.client, op: before.op, until: before.until}, input, output)
	next := after.(owner)
	next.token = before.token
	if token := r.lock.Token; r.action == acquire && token != 0 {
		ok, next.token = ok && token > before.token, token
	}
	return ok, next
}

func (r request) String() string {
	verb := [...]string{"acquire", "extend", "release"}[r.action]
	if r.failed {
		verb += " in vain"
	}
	return fmt.Sprintf("%v: %s", r.lock, verb)
}

// modelTime bounds the search for an order, in the machine's time. Mostly the search takes
// milliseconds, as the holds of one key are nearly in order already.
const modelTime = 30 * time.Second

// disorder finds keys for whose operations there is no order.
func disorder(events []Event) []Violation {
	requests := map[string][]porcupine.Operation{}
	var keys []string
	for _, r := range requestsOf(events) {
		key := r.lock.Key
		if requests[key] == nil {
			keys = append(keys, key)
		}
		requests[key] = append(requests[key], porcupine.Operation{
			ClientId: len(requests[key]), Input: r, Call: int64(r.call), Return: int64(r.answer),
		})
	}
	slices.Sort(keys)
	var found []Violation
	for _, key := range keys {
		if v, any := search(lockModel, Model, key, requests[key]); any {
			found = append(found, v)
		} else if fenced(requests[key]) {
			if v, any := search(fencedModel, Fencing, key, requests[key]); any {
				found = append(found, v)
			}
		}
	}
	return found
}

func fenced(all []porcupine.Operation) bool {
	return slices.ContainsFunc(all, func(op porcupine.Operation) bool { return op.Input.(request).lock.Token != 0 })
}

// search looks for an order that the model allows. If it finds none, or takes too long, it
// returns a violation of the rule.
func search(model porcupine.Model, rule, key string, all []porcupine.Operation) (v Violation, any bool) {
	switch result, info := porcupine.CheckOperationsVerbose(model, all, modelTime); result {
	case porcupine.Illegal:
		return misfit(rule, key, all, info), true
	case porcupine.Unknown:
		return Violation{Rule: rule, Key: key, Text: "the search for an order took too long"}, true
	}
	return Violation{}, false
}

// misfit names the first operation that does not fit into the longest order found.
// porcupine lists orders of the same length at random; misfit always takes the same one.
func misfit(rule, key string, all []porcupine.Operation, info porcupine.LinearizationInfo) Violation {
	var longest []int
	for _, partial := range info.PartialLinearizations()[0] {
		if cmp.Or(cmp.Compare(len(longest), len(partial)), slices.Compare(partial, longest)) < 0 {
			longest = partial
		}
	}
	first := Never
	v := Violation{Rule: rule, Key: key}
	for i, op := range all {
		if r := op.Input.(request); !slices.Contains(longest, i) && r.answer < first {
			first = r.answer
			v.At, v.Locks = r.answer, []Lock{r.lock}
			v.Text = fmt.Sprintf("no order of the operations on %q has room for %v", key, r)
			if rule == Fencing {
				v.Text += ", in which tokens grow"
			}
		}
	}
	return v
}

// requestsOf lists the operations in the events.
func requestsOf(events []Event) []request {
	type id struct {
		client, op int
		action     action
	}
	locks := map[id]Lock{}
	for _, l := range Locks(events) {
		locks[id{l.Client, l.Op, 0}] = l
	}
	var all []request
	open := map[id]int{} // index in all of each release that has not returned
	called := map[id]time.Duration{}
	for _, e := range events {
		if e.Kind == Closed {
			for _, r := range all {
				if r.action == acquire && r.lock.Client == e.Client && !r.lock.Retained {
					all = append(all, request{action: release, lock: r.lock, call: e.At, answer: math.MaxInt64, failed: true})
				}
			}
		}
		lock, held := locks[id{e.Client, e.Op, 0}]
		if !held {
			continue
		}
		switch e.Kind {
		case Granted:
			if lock.Resumed {
				lock.Token = 0 // it has that of an earlier lock
			}
			all = append(all, request{action: acquire, lock: lock, call: lock.Asked, answer: e.At})
		case Extending:
			called[id{e.Client, e.Op, extend}] = e.At
		case Extended:
			all = append(all, request{action: extend, lock: lock, call: called[id{e.Client, e.Op, extend}], answer: e.At})
		case Detached:
			all = append(all, request{action: release, lock: lock, call: e.At, answer: e.At})
		case Releasing:
			if lock.Retained {
				continue // the key is taken until Until
			}
			open[id{e.Client, e.Op, release}] = len(all)
			all = append(all, request{action: release, lock: lock, call: e.At, answer: math.MaxInt64, failed: true})
		case Released:
			if i, known := open[id{e.Client, e.Op, release}]; known {
				all[i].answer, all[i].failed = e.At, e.Err != ""
				delete(open, id{e.Client, e.Op, release})
			}
		}
	}
	return boundReleases(all)
}

// boundReleases shortens the search. Without it, each failed release that never returned
// could stand anywhere in the order, and n of them would make 2^n states. A failed release
// changes nothing, and is left out, if another release of the same lock succeeded, as the
// lock was held until that one; or if it was called after the end of validity, as the lock
// was as good as free by then. Any other has its effect before the end of validity, or none
// that matters, so that end bounds its answer.
func boundReleases(all []request) []request {
	released := map[Lock]bool{}
	for _, r := range all {
		if r.action == release && !r.failed {
			released[r.lock] = true
		}
	}
	all = slices.DeleteFunc(all, func(r request) bool {
		return r.failed && (released[r.lock] || r.lock.Until <= r.call)
	})
	for i := range all {
		if r := &all[i]; r.failed {
			r.answer = min(r.answer, r.lock.Until)
		}
	}
	return all
}
