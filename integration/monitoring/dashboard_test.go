package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dashboard is the part of Grafana's dashboard that asks Prometheus.
type dashboard struct {
	Panels []struct {
		Type, Title, Description string
		Targets                  []struct{ Expr string }
	}
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
	Annotations struct{ List []struct{ Expr string } }
}

// testDashboard asks Prometheus what the dashboard asks, of the whole run. Something has happened in
// it that each panel shows.
func (f *fixture) testDashboard(t *testing.T) {
	text, err := os.ReadFile("../../deploy/grafana/redlock.json")
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(text, &d))

	variables := strings.NewReplacer("$job", job, "$instance", ".*", "$__rate_interval", "5s")
	shown := func(expr string) {
		expr = variables.Replace(expr)
		require.NotContains(t, expr, "$")
		value, _, _, err := f.QueryRange(t.Context(), expr, v1.Range{Start: f.began, End: time.Now(), Step: time.Second})
		require.NoError(t, err, expr)
		above := 0
		for _, series := range value.(model.Matrix) {
			for _, sample := range series.Values {
				if sample.Value > 0 { // not NaN
					above++
				}
			}
		}
		assert.NotZero(t, above, expr)
	}
	queries := 0
	for _, p := range d.Panels {
		if p.Type == "row" {
			continue
		}
		assert.Contains(t, p.Description, "Normal: ", p.Title)
		assert.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			shown(target.Expr)
			queries++
		}
	}
	require.NotZero(t, queries)
	for _, a := range d.Annotations.List {
		shown(a.Expr)
	}

	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		parts := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(v.Definition)
		require.NotNil(t, parts, v.Definition)
		values, _, _, err := f.LabelValues(t.Context(), parts[2], []string{variables.Replace(parts[1])}, f.began, time.Now())
		require.NoError(t, err)
		assert.NotEmpty(t, values, v.Name)
	}
}
