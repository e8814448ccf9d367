package demo

import (
	"io"

	"github.com/quorumlock/redlock/internal/cli"
)

// jsonLines shows a demo to a program, as one object per step. The last object's ok and the exit
// status report how it ended.
type jsonLines struct{ w io.Writer }

func (j jsonLines) step(s *step) error { return cli.PrintJSON(j.w, s) }

func (jsonLines) open(string) error { return nil }
func (jsonLines) close(int) error   { return nil }
