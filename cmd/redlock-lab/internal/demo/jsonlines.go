package demo

import (
	"io"

	"github.com/quorumlock/redlock/internal/cli"
)

// jsonLines presents a demo to a machine: one object a step. How it ended is in
// the last object's ok, and in the exit status.
type jsonLines struct{ w io.Writer }

func (j jsonLines) step(s *step) error { return cli.PrintJSON(j.w, s) }

func (jsonLines) open(string) error { return nil }
func (jsonLines) close(int) error   { return nil }
