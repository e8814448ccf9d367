package main

import "slices"

// moved are bugs that show when another server is behind a node's address.
var moved = slices.Concat(
	guardedBy([]bug{
		{"promoted-without-record", "a promoted server without an identity record counts at once for a new client", one(guards,
			"return !dated && (now.promoted || now.others())", "return !dated && now.promoted && now.others()")},
	}, "empty-promotion"),
	guardedBy([]bug{
		{"old-date-believed", "a server that returns to its address counts by the date of its earlier stay", one(marker,
			"case replaced && earliest.After(heard):", "case replaced && (true || earliest.After(heard)):")},
	}, "excursion"),
	guardedBy([]bug{
		{"spare-not-dated", "the date in an identity record counts only if the server was once a replica", one(marker,
			"if !ok || !replaced && s.record == was {", "if !ok || !s.promoted || !replaced && s.record == was {")},
	}, "spare"),
	guardedBy([]bug{
		{"max-lag-left-out", "quarantine covers the longest ttl, but not what a deposed master still grants", one(guards,
			"clock: clk, period: period, drift", "clock: clk, period: max(period-2*time.Second, 1), drift")},
	}, "deposed"),
	guardedBy([]bug{
		{"believed-from-the-answer", "an identity is believed from when the answer was read, not from the question", one(verify,
			"v.at, v.voter = v.sent, ", "v.at, v.voter = read, ")},
	}, "late-info"),
	in([]bug{
		{"rested-not-asked", "a connection from the pool is not asked which server it leads to", one(pinned,
			"	p.conn = p.client.Conn()\n	p.check.reconnected()\n", "	p.conn = p.client.Conn()\n")},
	}, "--guard=false", "--nodes", "3", "--faults", "duplicate"),
	in([]bug{
		{"leaver-is-no-quorum", "when a caller gives up, nodes that have not answered count as failed", one(attempt,
			"	case tally.Outcome() == quorum.Open:\n		return nil, last\n", "	case tally.Outcome() == quorum.Open:\n		return ErrNoQuorum, last\n")},
	}),
)
