package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestUsageErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string // in the line
	}{
		"unknown command":       {[]string{"dmeo"}, "did you mean demo"},
		"URL for a command":     {[]string{"redis://:s3cret@h"}, "demo --nodes"},
		"unknown flag":          {[]string{"demo", "--nope"}, "--nope"},
		"flag without value":    {[]string{"demo", "--ttl"}, "--ttl"},
		"argument":              {[]string{"demo", "redis://:s3cret@h"}, "no arguments"},
		"version with argument": {[]string{"version", "x"}, "no arguments"},
		"ttl is no duration":    {[]string{"demo", "--ttl", "soon"}, "soon"},
		"ttl is a URL":          {[]string{"demo", "--ttl", "redis://u:s3cret@h"}, "invalid argument"},
		"ttl too short":         {[]string{"demo", "--ttl", "10ms"}, "below 1s"},
		"ttl negative":          {[]string{"demo", "--ttl=-1s"}, "below 1s"},
		"no URL":                {[]string{"demo", "--nodes", ""}, "URL 1"},
		"two commas":            {[]string{"demo", "--nodes", "redis://a,,redis://b"}, "URL 2 is empty"},
		"other scheme":          {[]string{"demo", "--nodes", "redis://a", "--nodes", "http://:s3cret@b"}, "URL 2"},
		"no scheme":             {[]string{"demo", "--nodes", "s3cret@b:6379"}, "URL 1"},
		"raw password":          {[]string{"demo", "--nodes", "redis://:s3cret%@b"}, "URL 1"},
		"quote in password":     {[]string{"demo", "--nodes", `redis://:s3cret"x@b:port`}, "URL 1"},
		"comma in password":     {[]string{"demo", "--nodes", "redis://:1,s3cret@b"}, "URL 2"},
		"bad option":            {[]string{"demo", "--nodes", "redis://:s3cret@b?nope=1"}, "URL 1"},
		"one master twice":      {[]string{"demo", "--nodes", "redis://:s3cret@b,redis://B:6379/1"}, "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := runArgs(t, t.Context(), newRoot(), tc.args...)
			assert.Equal(t, exitUsage, code)
			assert.Empty(t, stdout)
			assertOneLine(t, stderr)
			assert.Contains(t, stderr, tc.want)
			assert.NotContains(t, stderr, "s3cret")
		})
	}
}

func TestHelpSaysWhatItDoes(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"help"}, {"demo", "--help"}, {"help", "demo"}} {
		code, stdout, stderr := runArgs(t, t.Context(), newRoot(), args...)
		assert.Equal(t, exitOK, code)
		assert.Empty(t, stderr)
		assert.Contains(t, stdout, "Examples:\n  redlock demo", "redlock %v", args)
		assertFits(t, stdout)
	}
}
