package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/port"
)

const (
	// faster is by how much the durations of the rules are divided.
	faster = 60
	// interval is between two scrapes, and between two evaluations of the rules.
	interval = 400 * time.Millisecond
	// patience bounds the wait for an event on a loaded machine.
	patience = time.Minute
)

// monitor is a Prometheus with the shipped rules.
type monitor struct {
	v1.API
	began time.Time
}

// startMonitor starts a Prometheus that scrapes the targets, by instance, as one job.
func startMonitor(t *testing.T, job string, targets map[string]string) monitor {
	t.Helper()
	folder := t.TempDir()
	var static strings.Builder
	for _, instance := range slices.Sorted(maps.Keys(targets)) {
		fmt.Fprintf(&static, "      - {targets: [%q], labels: {instance: %q}}\n", targets[instance], instance)
	}
	for name, text := range map[string]string{
		"rules.yml": fasterRules(t),
		"prometheus.yml": fmt.Sprintf(`
global: {scrape_interval: %v, scrape_timeout: %[1]v, evaluation_interval: %[1]v}
rule_files: [rules.yml]
scrape_configs:
  - job_name: %s
    static_configs:
%s`, interval, job, &static),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}

	reserved, err := port.Reserve()
	require.NoError(t, err)
	t.Cleanup(reserved.Release)
	// If this process dies, the shell's input ends and Prometheus with it.
	cmd := exec.Command("/bin/sh", "-c", `"$@" & cat; kill -9 $!; wait`, "sh", "prometheus",
		"--config.file="+filepath.Join(folder, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(folder, "data"),
		"--web.listen-address="+reserved.Addr(),
		"--enable-feature=exemplar-storage",
		"--log.level=warn")
	output := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = output, output
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = input.Close()
		_ = cmd.Wait() // the kill
		if t.Failed() {
			t.Logf("Prometheus:\n%s", output)
		}
	})

	client, err := api.NewClient(api.Config{Address: "http://" + reserved.Addr()})
	require.NoError(t, err)
	m := monitor{v1.NewAPI(client), time.Now()}
	eventually(t, "a scrape of each target", func(ctx context.Context, c *assert.CollectT) {
		assert.Len(c, m.query(ctx, c, `up == 1`), len(targets))
	})
	return m
}

// fasterRules returns the shipped rules with durations, and the threshold of waits, divided by faster.
func fasterRules(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	require.NoError(t, err)
	durations := regexp.MustCompile(`(\[|offset |for: )(\d+[smh])\b`)
	rules := durations.ReplaceAllStringFunc(string(text), func(found string) string {
		parts := durations.FindStringSubmatch(found)
		d, err := time.ParseDuration(parts[2])
		require.NoError(t, err)
		return fmt.Sprintf("%s%dms", parts[1], (d / faster).Milliseconds())
	})
	require.NotRegexp(t, `(\[|offset |for: )\d+(s|h|d|w|y|m[^s])`, rules, "durations in milliseconds")
	const threshold = "> 30\n"
	require.Equal(t, 1, strings.Count(rules, threshold))
	return strings.Replace(rules, threshold, fmt.Sprintf("> %v\n", 30./faster), 1)
}

// query evaluates an expression that has a vector as its value.
func (m monitor) query(ctx context.Context, t require.TestingT, expr string) model.Vector {
	value, _, _, err := m.Query(ctx, expr, time.Now())
	require.NoError(t, err, expr)
	return value.(model.Vector)
}

// firing returns the names of the alerts that fire.
func (m monitor) firing(ctx context.Context, t require.TestingT) []string {
	result, err := m.Alerts(ctx)
	require.NoError(t, err)
	var alerts []string
	for _, a := range result.Alerts {
		if a.State == v1.AlertStateFiring {
			alerts = append(alerts, nameOf(a.Labels))
		}
	}
	return alerts
}

// nameOf returns an alert's name, with what tells it from others of the name.
func nameOf(labels model.LabelSet) string {
	return strings.TrimSpace(fmt.Sprint(labels["alertname"], " ", labels["server_port"], labels["redlock_cause"]))
}

// await waits until these alerts fire and no others.
func (m monitor) await(t *testing.T, alerts ...string) {
	t.Helper()
	began := time.Now()
	eventually(t, strings.Join(alerts, ", "), func(ctx context.Context, c *assert.CollectT) {
		assert.ElementsMatch(c, alerts, m.firing(ctx, c))
	})
	t.Logf("%v after %.1f s", alerts, time.Since(began).Seconds())
}

// fired returns the alerts that have fired since a time.
func (m monitor) fired(ctx context.Context, t require.TestingT, since time.Time) []string {
	window := model.Duration(time.Since(since).Round(time.Second) + time.Second)
	var alerts []string
	for _, sample := range m.query(ctx, t, fmt.Sprintf(`max_over_time(ALERTS{alertstate="firing"}[%v])`, window)) {
		alerts = append(alerts, nameOf(model.LabelSet(sample.Metric)))
	}
	return alerts
}

// awaitFired waits until these alerts have fired since a time, at the same time or not.
func (m monitor) awaitFired(t *testing.T, since time.Time, alerts ...string) {
	t.Helper()
	eventually(t, strings.Join(alerts, ", "), func(ctx context.Context, c *assert.CollectT) {
		assert.Subset(c, m.fired(ctx, c, since), alerts)
	})
	t.Logf("%v after %.1f s", alerts, time.Since(since).Seconds())
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, condition func(context.Context, *assert.CollectT)) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) { condition(t.Context(), c) }, patience, interval/4, what)
}
