package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/quorumlock/redlock/bench/report"
	"github.com/quorumlock/redlock/bench/result"
)

// stored reads the figures that write has written beside a page.
func stored(file string) (run result.Run, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return run, err
	}
	if err := json.Unmarshal(text, &run); err != nil {
		return run, fmt.Errorf("%s: %w", file, err)
	}
	return run, nil
}

// write writes the page, with the figures beside it.
func write(o options, run result.Run) error {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	if err := report.Write(o.out, run); err != nil {
		return fmt.Errorf("the page: %w", err)
	}
	fmt.Fprintln(os.Stderr, "the page and its figures are in", o.out)
	return nil
}
