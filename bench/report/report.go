// Package report turns the figures of a comparison into a page with tables and plots, and into
// a table for a terminal. It says which figures were not measured. The same input always gives
// the same files, byte by byte.
package report

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/quorumlock/redlock/bench/result"
)

// Write writes the page into the existing directory dir: benchmarks.md, the run itself as
// benchmarks.json, and the plots benchmarks-latency.svg, benchmarks-callers.svg,
// benchmarks-nodes.svg, benchmarks-faults.svg, benchmarks-contended.svg and
// benchmarks-commands.svg. It replaces existing files.
//
// If the run cannot be rendered (a figure is not a finite number), Write writes nothing. If a
// file cannot be written, the files before it in this order are new and the others are
// unchanged.
func Write(dir string, run result.Run) error {
	raw, err := indented(run)
	if err != nil {
		return fmt.Errorf("benchmarks.json: %w", err)
	}
	m := measure(run)
	text, err := page(m)
	if err != nil {
		return fmt.Errorf("benchmarks.md: %w", err)
	}
	files := []file{{"benchmarks.json", raw}, {"benchmarks.md", text}}
	for _, p := range plots {
		svg, err := p.render(m)
		if err != nil {
			return fmt.Errorf("%s: %w", p.file, err)
		}
		files = append(files, file{p.file, svg})
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.name), f.data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

type file struct {
	name string
	data []byte
}
