package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// The pages are made of the commands by a test (go test ./cmd/redlock -run Manual -update),
// so that what makes them is not part of the program.
//
//go:embed man/*.1
var manual embed.FS

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man FOLDER",
		Short: "Write the manual pages into a folder",
		Long: `man writes a manual page for each command into the folder, which is made if it
is not there. Where man(1) looks for them is what manpath(1) says, with a
folder man1 below.`,
		Example: `  redlock man ~/.local/share/man/man1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usagef("want one FOLDER: redlock man FOLDER")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := writeManual(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d pages written to %s\n", n, args[0])
			return err
		},
	}
}

func writeManual(folder string) (pages int, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return 0, fmt.Errorf("cannot make the folder: %w", err)
	}
	return pages, fs.WalkDir(manual, "man", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		page, err := manual.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, entry.Name()), page, 0o644)
		}
		pages++
		return errors.Join(err)
	})
}
