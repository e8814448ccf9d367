package timeline

import (
	"strings"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// vote is how a node's answer counts.
type vote string

const (
	granted vote = "granted"
	refused vote = "refused"
	failed  vote = "failed"
)

// voteOf returns the vote of a Voted event. It looks in the free Text for the first word that
// quorum.Vote or Redis uses for a vote. An answer without such a word counts as a grant.
func voteOf(e history.Event) vote {
	if e.Err != "" {
		return failed
	}
	for _, word := range strings.FieldsFunc(strings.ToLower(e.Text), separates) {
		switch word {
		case "granted", "grants", "ok", "1":
			return granted
		case "failed", "fails", "error", "err", "lost", "timeout", "unreachable", "dropped":
			return failed
		case "refused", "refuses", "denied", "no", "nil", "0", "held", "not":
			return refused
		}
		// A release returns the remaining time of another client's key as a negative number.
		if len(word) > 1 && word[0] == '-' && word[1] >= '0' && word[1] <= '9' {
			return refused
		}
	}
	return granted
}

func separates(r rune) bool { return strings.ContainsRune(" \t\n,;:()[]<>=\"'", r) }
