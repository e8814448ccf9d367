package run

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
	var s lastHolder
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
		got, _ := s.describe(&redlock.Inspection{Need: 2, Nodes: look.nodes}, start.Add(look.after))
		assert.Equal(t, look.want, got, "after %v", look.after)
	}
}
