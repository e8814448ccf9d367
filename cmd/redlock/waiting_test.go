package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/redlock"
)

func TestWhomAWaitIsFor(t *testing.T) {
	held := func(by string, left time.Duration) redlock.NodeInspection {
		return redlock.NodeInspection{Holder: by, TTL: left}
	}
	free, dead := redlock.NodeInspection{}, redlock.NodeInspection{Err: errAtOnce}
	a, b := held("aaaa", 5*time.Second), held("bbbb", 7*time.Second)
	start := time.Unix(0, 0)
	var s sighting
	for _, look := range []struct {
		after time.Duration
		nodes []redlock.NodeInspection
		want  string
	}{
		{0, []redlock.NodeInspection{a, a, free}, "held by aaaa on 2 of 3 for 0s+, 5s left"},
		{3 * time.Second, []redlock.NodeInspection{a, a, held("aaaa", 6*time.Second)}, "held by aaaa on 3 of 3 for 3s+, 6s left"},
		{4 * time.Second, []redlock.NodeInspection{a, b, free}, "nobody holds a majority of 3 masters"},
		{5 * time.Second, []redlock.NodeInspection{a, dead, dead}, "no quorum, 1 of 3 masters answer"},
		{6 * time.Second, []redlock.NodeInspection{a, dead, a}, "held by aaaa on 2 of 3 for 6s+, 5s left"},
		{8 * time.Second, []redlock.NodeInspection{b, a, b}, "held by bbbb on 2 of 3 for 0s+, 7s left"},
		{9 * time.Second, []redlock.NodeInspection{b, a, b}, "held by bbbb on 2 of 3 for 1s+, 7s left"},
	} {
		got := s.describe(&redlock.Inspection{Need: 2, Nodes: look.nodes}, start.Add(look.after))
		assert.Equal(t, look.want, got, "after %v", look.after)
	}
}

func TestDurationsOfFlags(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"10": 10 * time.Second, "0.5": 500 * time.Millisecond, "1m30s": 90 * time.Second, "0": 0, "-1": -time.Second,
		"1e3": 1000 * time.Second, "3ms": 3 * time.Millisecond,
	} {
		var d duration
		assert.NoError(t, d.Set(text))
		assert.Equal(t, want, time.Duration(d), text)
	}
	for _, text := range []string{"", "soon", "1e30", "-1e30", "NaN", "Inf", "10 s", "redis://h"} {
		var d duration
		assert.Error(t, d.Set(text), text)
	}
}
