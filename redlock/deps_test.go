package redlock_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// OpenTelemetry stays in the module of package redlockotel: no package of this module depends on it.
func TestNoPackageDependsOnOpenTelemetry(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-test", "../...").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "github.com/quorumlock/redlock/redlock\n")
	mod, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	for path := range strings.FieldsSeq(string(out) + string(mod)) {
		assert.NotContains(t, path, "opentelemetry")
	}
}
