package timeline

import (
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// possession is a time during which a key on a node belonged to a client's lock.
type possession struct {
	node       int
	key        string
	client, op int
	from, to   time.Duration
	renewals   int
	how        string // how it ended
}

// possessions returns the possessions of all keys on all nodes, in the order of their
// beginnings.
func possessions(events []history.Event) []possession {
	type place struct {
		node int
		key  string
	}
	var list []possession
	current := map[place]int{}
	end := func(i int, at time.Duration, how string) {
		if p := &list[i]; at < p.to {
			p.to, p.how = max(at, p.from), how
		}
	}
	for _, e := range events {
		at := place{e.Node, e.Key}
		i, held := current[at]
		switch e.Kind {
		case history.Stored:
			until := e.Until
			if until <= e.At {
				until = history.Never // it does not expire
			}
			if held && list[i].client == e.Client && list[i].op == e.Op && list[i].to >= e.At {
				list[i].to = until
				list[i].renewals++
				continue
			}
			if held {
				end(i, e.At, "taken over")
			}
			current[at] = len(list)
			list = append(list, possession{
				node: e.Node, key: e.Key, client: e.Client, op: e.Op,
				from: e.At, to: until, how: "expired",
			})
		case history.Removed:
			if held {
				end(i, e.At, "removed")
				delete(current, at)
			}
			// Without a key, the node lost all its keys.
			for k, i := range current {
				if e.Key == "" && k.node == e.Node {
					end(i, e.At, "removed")
					delete(current, k)
				}
			}
		}
	}
	return slices.DeleteFunc(list, func(p possession) bool { return p.to <= p.from })
}
