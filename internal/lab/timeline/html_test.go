package timeline

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/lab/history"
)

func paged(t *testing.T, r Run) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, HTML(&b, r))
	return b.String()
}

func TestPageSaysHowItWentAndHowToReplayIt(t *testing.T) {
	r := small(lockEvents(1, 1, "a", 100*ms, 120*ms, 500*ms, 900*ms)...)
	r.Command = "redlock simulate --seed 1 --faults 'a<b'"
	s := paged(t, r)
	require.Contains(t, s, "no violation")
	require.Contains(t, s, "redlock simulate --seed 1 --faults &#39;a&lt;b&#39;")
	require.Contains(t, s, "100.000  c1", "the text")
	require.Equal(t, 2, strings.Count(s, "<svg"), "the picture, and its names that stay")
}

func TestPageShowsViolationsCloseUpAndLinksToThem(t *testing.T) {
	r := overlapping(42)
	s := paged(t, r)
	require.NotContains(t, s, "no violation")
	require.Contains(t, s, "Violation 1 close up")
	for _, link := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(s, -1) {
		require.Equal(t, 1, strings.Count(s, `id="`+link[1]+`"`), link[1])
	}
	ids := map[string]bool{}
	for _, id := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(s, -1) {
		require.False(t, ids[id[1]], "%s is there twice", id[1])
		ids[id[1]] = true
	}
}

func TestViolationsThatComeTogetherShareACloseUp(t *testing.T) {
	r := overlapping(42)
	v := r.Violations[0]
	r.Violations = nil
	for range 20 {
		r.Violations = append(r.Violations, v)
	}
	require.Equal(t, 1, strings.Count(paged(t, r), "close up"))
}

func TestPageNeedsNothingFromElsewhere(t *testing.T) {
	s := strings.ReplaceAll(paged(t, overlapping(42)), `xmlns="http://www.w3.org/2000/svg"`, "")
	for _, s2 := range []string{"http:", "https:", "<script", "@import", "src="} {
		require.NotContains(t, s, s2)
	}
}

func TestPageOfViolationsWithoutLocksOrOutsideTheRun(t *testing.T) {
	r := small()
	r.Violations = []history.Violation{{}, {At: -1}, {At: history.Never}, {At: 500 * ms, Locks: []history.Lock{{}, {}}}}
	require.Contains(t, paged(t, r), "4 violations")
}
