package plain_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/internal/plain"
)

func TestLineHidesCredentials(t *testing.T) {
	for in, want := range map[string]string{
		`invalid argument "redis://u:p@h"`:         `invalid argument "redis://...@h"`,
		"x rediss://:p@ss w@h:1 and redis://:q@i":  "x rediss://...@i",
		"redlock: acquire \"k\": no quorum":        "acquire \"k\": no quorum",
		"a\nredlock b\x1b[2J":                      "a; redlock b [2J",
		"redis://h:6379 has no credentials at all": "redis://h:6379 has no credentials at all",
	} {
		assert.Equal(t, want, plain.Line(errors.New(in)))
	}
}
