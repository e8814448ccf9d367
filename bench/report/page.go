package report

import (
	"bytes"
	_ "embed"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/quorumlock/redlock/bench/result"
)

//go:embed page.md.tmpl
var pageText string

// mixed holds the tables that the command bench/mixed writes to this file (-o). A run of the
// comparison does not repeat them.
//
//go:embed mixed.md
var mixed string

const mixedCommand = "go -C bench run ./mixed -o report/mixed.md"

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page returns the run as Markdown.
func page(m measured) ([]byte, error) {
	run := m.run
	table := func(of result.Scenario, first string) string {
		return orNothing(scenario(m, of, first))
	}
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, map[string]any{
		"Command":    or(run.Command, "not recorded"),
		"Quick":      run.Quick,
		"Rounds":     counted(len(m.rounds), "round"),
		"Headlines":  headlines(m).markdown(),
		"Subjects":   subjects().markdown(),
		"Machine":    machine(run).markdown(),
		"Callers":    table(result.Callers, "callers"),
		"Nodes":      table(result.Nodes, "masters"),
		"Faults":     table(result.Faults, "of five masters"),
		"Links":      table(result.Links, "round trip"),
		"Guarantees": table(result.Guarantees, "callers"),
		"Goals":      goalTable(m).markdown(),
		"Contended":  contendedTables(m),
		"OtherWays":  orNothing(otherWays(m)),
		"Idle":       orNothing(idleWaiters(run.Idles)),
		"Live":       orNothing(liveLocks(run.Renewals)),

		"Mixed":        mixed,
		"MixedCommand": mixedCommand,
		"NoFigure":     noFigure,
	})
	return b.Bytes(), err
}

// orNothing returns the grid in Markdown, or the statement that nothing was measured.
func orNothing(g grid) string {
	if len(g.rows) == 0 {
		return "Not measured.\n"
	}
	return g.markdown()
}

// subjects returns the table of the compared subjects.
func subjects() grid {
	g := grid{head: []string{"subject", "what it is"}}
	for _, id := range identities {
		g.rows = append(g.rows, []string{string(id.subject), id.what})
	}
	return g
}

// machine returns the table of the machine that the comparison ran on.
func machine(run result.Run) grid {
	of := run.Machine
	g := grid{head: []string{"", ""}}
	add := func(what, value string) {
		g.rows = append(g.rows, []string{what, or(strings.TrimSpace(value), "not recorded")})
	}
	when, cores, memory := "", "", ""
	if !run.When.IsZero() {
		when = run.When.UTC().Format("2 January 2006, 15:04 MST")
	}
	if of.Cores > 0 {
		cores = whole(float64(of.Cores))
	}
	if of.MemoryGiB > 0 {
		memory = figure(of.MemoryGiB) + " GiB"
	}
	add("when", when)
	add("processor", of.CPU)
	add("cores", cores)
	add("memory", memory)
	add("system", of.OS+" "+of.Kernel)
	add("Go", of.Go)
	add("Redis", of.Redis)
	for _, path := range slices.Sorted(maps.Keys(of.Modules)) {
		add("`"+path+"`", of.Modules[path])
	}
	return g
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
