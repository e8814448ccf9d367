package main

import (
	"embed"

	"github.com/spf13/cobra"

	"github.com/quorumlock/redlock/cmd/redlock/internal/acquire"
	"github.com/quorumlock/redlock/cmd/redlock/internal/extend"
	"github.com/quorumlock/redlock/cmd/redlock/internal/nodes"
	"github.com/quorumlock/redlock/cmd/redlock/internal/release"
	"github.com/quorumlock/redlock/cmd/redlock/internal/run"
	"github.com/quorumlock/redlock/cmd/redlock/internal/status"
	"github.com/quorumlock/redlock/internal/cli"
)

// version is the version of a release, set by the linker (-X main.version=v1.2.3).
var version string

// A test generates the manual pages (go test ./cmd/redlock -run Manual -update), so the program
// does not contain the generator.
//
//go:embed man/*.1
var manual embed.FS

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "redlock",
		Short: "Locks that a majority of independent Redis masters agrees on",
		Long: `redlock runs commands under locks that a majority of independent Redis masters
agrees on: they outlive the loss of any minority of the masters.`,
		Example: `  redlock run nightly-report -- ./report.sh
  redlock status nightly-report`,
		Args: knownCommand,
	}
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"locks", "Locks:", []*cobra.Command{run.Command(), run.Elect(), acquire.Command(), extend.Command(), release.Command(), status.Command()}},
		{"masters", "Masters:", []*cobra.Command{nodes.Command()}},
	} {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, c := range group.commands {
			c.GroupID = group.id
		}
		root.AddCommand(group.commands...)
	}
	return cli.Program(root, version, manual)
}

// knownCommand refuses an unknown command. It refers demo and sim to redlock-lab.
func knownCommand(root *cobra.Command, args []string) error {
	if len(args) > 0 && (args[0] == "demo" || args[0] == "sim") {
		return cli.Usagef("no command %q, it is one of redlock-lab (see redlock-lab --help)", args[0])
	}
	return cli.KnownCommand(root, args)
}
