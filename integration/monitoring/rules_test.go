package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	rulesFile     = "../../deploy/prometheus/redlock.rules.yml"
	rulesTestFile = "../../deploy/prometheus/redlock.rules.test.yml"
	docsFile      = "../../docs/observability.md"
)

// Each alert fires and clears at its real durations, and none does on healthy series.
func TestRules(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out what needs promtool")
	}
	for _, args := range [][]string{{"check", "rules", rulesFile}, {"test", "rules", rulesTestFile}} {
		out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput()
		require.NoError(t, err, "promtool %s\n%s", strings.Join(args, " "), out)
	}
}

// Each alert is tested, and its runbook is a section of the docs.
func TestRulesAreExplained(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		return string(text)
	}
	rules, tests, docs := read(rulesFile), read(rulesTestFile), read(docsFile)
	alerts := regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(rules, -1)
	require.NotEmpty(t, alerts)
	for _, a := range alerts {
		name := a[1]
		assert.Contains(t, rules, "docs/observability.md#"+strings.ToLower(name)+"\n", name)
		assert.Regexp(t, `(?m)^### `+name+`$`, docs)
		assert.Contains(t, tests, "alertname: "+name+"\n", "a time at which it fires")
		assert.Contains(t, tests, "{alertname: "+name+", ", "a time at which it does not")
	}
	assert.Len(t, regexp.MustCompile(`runbook_url`).FindAllString(rules, -1), len(alerts))
}

// The docs quote the service as it is.
func TestDocsQuoteTheService(t *testing.T) {
	service, err := os.ReadFile("main.go")
	require.NoError(t, err)
	docs, err := os.ReadFile(docsFile)
	require.NoError(t, err)
	lines := func(text string) string { // without indentation
		return regexp.MustCompile(`(?m)^\s+`).ReplaceAllString(text, "")
	}
	_, section, found := strings.Cut(string(docs), "\n## A service with Prometheus\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(section, -1)
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		assert.Contains(t, lines(string(service)), lines(b[1]))
	}
}
