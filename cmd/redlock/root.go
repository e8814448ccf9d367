package main

import (
	"embed"

	"github.com/spf13/cobra"
)

// release is the version of a release, set by the linker (-X main.release=v1.2.3).
var release string

// A test makes the pages of the commands (go test ./cmd/redlock -run Manual -update), so that
// what makes them is not part of the program.
//
//go:embed man/*.1
var manual embed.FS

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "redlock",
		Short: "Locks that a majority of independent Redis masters agrees on",
		Long: `redlock runs commands under locks that a majority of independent Redis masters
agrees on: they outlive the loss of any minority of the masters.`,
		Example: `  redlock demo
  redlock run nightly-report -- ./report.sh`,
	}
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"locks", "Locks:", []*cobra.Command{newRun(), newStatus(), newRelease()}},
		{"masters", "Masters:", []*cobra.Command{newNodes()}},
		{"shows", "To see how it works, without any masters of yours:", []*cobra.Command{newDemo(), newSim()}},
	} {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, c := range group.commands {
			c.GroupID = group.id
		}
		root.AddCommand(group.commands...)
	}
	return newProgram(root, release, manual)
}
