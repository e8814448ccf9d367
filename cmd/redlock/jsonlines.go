package main

import "io"

// jsonLines presents a demo to a machine: one object a step. How it ended is in
// the last object's ok, and in the exit status.
type jsonLines struct{ w io.Writer }

func (j jsonLines) step(s *step) error { return printJSON(j.w, s) }

func (jsonLines) open(string) error { return nil }
func (jsonLines) close(int) error   { return nil }
