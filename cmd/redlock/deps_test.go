package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The production command does not link packages that only tests or redlock-lab need.
func TestRedlockLinksNothingForTests(t *testing.T) {
	forTests := regexp.MustCompile(`^testing(/|$)|/(miniredis|gopher-lua|porcupine|testify|go-internal|goleak)(/|$)` +
		`|^github.com/quorumlock/redlock/(redlock/redlocktest|internal/(lab|testenv)|cmd/redlock-lab|internal/cli/clitest)(/|$)`)
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "github.com/quorumlock/redlock/redlock\n")
	for path := range strings.FieldsSeq(string(out)) {
		assert.NotRegexp(t, forTests, path)
	}
}
