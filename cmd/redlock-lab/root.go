package main

import (
	"embed"

	"github.com/spf13/cobra"

	"github.com/quorumlock/redlock/cmd/redlock-lab/internal/demo"
	"github.com/quorumlock/redlock/cmd/redlock-lab/internal/sim"
	"github.com/quorumlock/redlock/cmd/redlock-lab/internal/site"
	"github.com/quorumlock/redlock/internal/cli"
)

// version is the version of a release, set by the linker (-X main.version=v1.2.3).
var version string

// A test generates the manual pages (go test ./cmd/redlock-lab -run Manual -update).
//
//go:embed man/*.1
var manual embed.FS

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "redlock-lab",
		Short: "Show and break locks that a majority of Redis masters agrees on",
		Long: `redlock-lab shows how a majority of independent Redis masters agrees on a lock,
and simulates clients and masters under faults. It brings its own masters, in
memory, so nothing needs to be installed. redlock(1) is the command for work
under a lock.`,
		Example: `  redlock-lab demo
  redlock-lab serve
  redlock-lab sim --seed 42 --html run.html`,
	}
	root.AddCommand(demo.Command(), sim.Command(), site.Serve(), site.Export())
	return cli.Program(root, version, manual)
}
