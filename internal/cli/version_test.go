package cli

import (
	"bytes"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVersionShowsWhatTheBuildKnows(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, printVersion(&out, "redlock", "", &debug.BuildInfo{
		GoVersion: "go1.26.0",
		Main:      debug.Module{Path: "example.com/m", Version: "v1.2.3"},
		Settings: []debug.BuildSetting{
			{Key: "GOOS", Value: "plan9"}, {Key: "GOARCH", Value: "arm"},
			{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"},
		},
	}))
	assert.Equal(t, "redlock    v1.2.3\nmodule     example.com/m\ngo         go1.26.0 plan9/arm\n"+
		"revision   abc\nmodified   yes: built from a changed checkout\n", out.String())
}
