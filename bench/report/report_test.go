package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/bench/result"
)

var (
	out    = flag.String("out", "", "existing folder for the page of a made-up run, to look at it")
	update = flag.Bool("update", false, "write the golden files anew")
)

// written returns the files that Write makes of a run, by name.
func written(t *testing.T, run result.Run) map[string]string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, Write(dir, run))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	files := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		files[e.Name()] = string(data)
	}
	return files
}

// summary returns the text that Summary makes of a run.
func summary(t *testing.T, run result.Run) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Summary(&b, run))
	return b.String()
}

// The golden page must not depend on the last results of bench/mixed.
func init() { mixed = "### A table of bench/mixed\n\n| a |\n|---|\n| 1 |\n\n" }

func TestWriteMakesEveryFile(t *testing.T) {
	files := written(t, synthetic())
	for _, name := range []string{
		"benchmarks.md", "benchmarks.json", "benchmarks-latency.svg",
		"benchmarks-callers.svg", "benchmarks-nodes.svg", "benchmarks-faults.svg",
		"benchmarks-contended.svg", "benchmarks-commands.svg",
	} {
		assert.Contains(t, files, name)
	}
	assert.Len(t, files, 8)
	for _, link := range regexp.MustCompile(`\((benchmarks[^)]*)\)`).FindAllStringSubmatch(files["benchmarks.md"], -1) {
		assert.Contains(t, files, link[1], "the page links it")
	}
	if *out != "" {
		require.NoError(t, Write(*out, synthetic()))
	}
}

func TestPageIsGolden(t *testing.T) {
	files := written(t, small())
	golden := filepath.Join("testdata", "small.md")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(files["benchmarks.md"]), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), files["benchmarks.md"], "go test -update writes it anew")
}

func TestSummaryIsGolden(t *testing.T) {
	got := summary(t, small())
	golden := filepath.Join("testdata", "small.txt")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "go test -update writes it anew")
}

func TestSameFiguresMakeSameFiles(t *testing.T) {
	once := written(t, synthetic())
	assert.Equal(t, once, written(t, synthetic()))

	backwards := synthetic()
	slices.Reverse(backwards.Samples)
	slices.Reverse(backwards.Renewals)
	again := written(t, backwards)
	delete(once, "benchmarks.json") // keeps the order of the measurements
	delete(again, "benchmarks.json")
	assert.Equal(t, once, again)
}

func TestJSONIsTheRun(t *testing.T) {
	run := synthetic()
	run.Command = "bench [ 1 2 ] [\n3 ]" // like a list of numbers, which is put on one line
	var back result.Run
	require.NoError(t, json.Unmarshal([]byte(written(t, run)["benchmarks.json"]), &back))
	assert.Equal(t, run, back)
}

func TestQuickRunSaysSo(t *testing.T) {
	run := small()
	for _, quick := range []bool{false, true} {
		run.Quick = quick
		page := written(t, run)["benchmarks.md"]
		assert.Equal(t, quick, bytes.Contains([]byte(page), []byte("MEAN NOTHING")))
		assert.Equal(t, quick, bytes.Contains([]byte(summary(t, run)), []byte("mean nothing")))
	}
}

func TestWithoutSamples(t *testing.T) {
	files := written(t, result.Run{})
	proper(t, files)
	assert.Contains(t, files["benchmarks.md"],
		"| 1,024 callers, throughput | ceiling | not measured | ≥ 0.55× |")
	for _, b := range bars(measure(result.Run{})) {
		assert.Equal(t, "not measured", b.measured, b.what)
	}
	for _, p := range plots {
		assert.Contains(t, files[p.file], ">not measured</text>")
	}
	assert.Contains(t, summary(t, result.Run{}), "not measured")
}

// Nothing succeeded anywhere: there are only errors to count.
func TestOnlyErrors(t *testing.T) {
	run := synthetic()
	for i, s := range run.Samples {
		run.Samples[i] = result.Sample{Cell: s.Cell, Subject: s.Subject, Round: s.Round, Errors: 3}
	}
	files := written(t, run)
	proper(t, files)
	assert.Contains(t, files["benchmarks.md"],
		"| 1 caller | quorumlock | 0 | – | – | – | 15 of 15 |")
	assert.Contains(t, files["benchmarks.md"], "| 16 callers, throughput | redsync | – | ≥ 5× |")
	assert.NotRegexp(t, "NaN|Inf", summary(t, run))
	assert.Contains(t, files["benchmarks-latency.svg"], ">nothing succeeded</text>")
}

// One subject has only errors, like redsync when two of five masters hang. It has a place in
// the plot of faults, and its figures do not spoil those of others.
func TestOneSubjectWithOnlyErrors(t *testing.T) {
	run := synthetic()
	for i, s := range run.Samples {
		if s.Subject == result.Redsync {
			run.Samples[i] = result.Sample{Cell: s.Cell, Subject: s.Subject, Round: s.Round, Errors: 1}
		}
	}
	files := written(t, run)
	proper(t, files)
	page := files["benchmarks.md"]
	assert.Contains(t, page, "| 1 caller, p50 of acquire + release | redsync | – |")
	assert.Regexp(t, `\| 1 caller, p50 of acquire \+ release \| floor \| 1\.\d\d× `, page)
	assert.Contains(t, files["benchmarks-faults.svg"], ">none</text>")
}

func TestFiguresThatAreNone(t *testing.T) {
	dir := t.TempDir()
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		run := small()
		run.Samples[0].PerSecond = bad
		require.Error(t, Write(dir, run))
		assert.NotRegexp(t, "NaN|Inf", summary(t, run))
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left, "nothing is written of a run that cannot be rendered")
}

func TestErrorsOfWriting(t *testing.T) {
	require.ErrorIs(t, Write(filepath.Join(t.TempDir(), "none"), small()), os.ErrNotExist)
	require.ErrorIs(t, Summary(broken{}, small()), errBroken)
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

// proper checks that no file has a figure that is not finite, and that the plots are XML.
func proper(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		assert.NotRegexp(t, `NaN|[+-]Inf\b|\bInf\b`, text, name)
		if filepath.Ext(name) != ".svg" {
			continue
		}
		decoder := xml.NewDecoder(bytes.NewBufferString(text))
		for {
			_, err := decoder.Token()
			if err == io.EOF {
				break
			}
			require.NoError(t, err, name)
		}
	}
}
