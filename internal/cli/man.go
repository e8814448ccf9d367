package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

func newMan(program string, manual fs.FS) *cobra.Command {
	return &cobra.Command{
		Use:   "man FOLDER",
		Short: "Write the manual pages into a folder",
		Long: `man writes a manual page for each command into the folder, which is made if it
is not there. Where man(1) looks for them is what manpath(1) says, with a
folder man1 below.`,
		Example: "  " + program + " man ~/.local/share/man/man1",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return Usagef("want one FOLDER: %s FOLDER", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := writeManual(manual, args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d pages written to %s\n", n, args[0])
			return err
		},
	}
}

func writeManual(manual fs.FS, folder string) (pages int, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return 0, fmt.Errorf("cannot make the folder: %w", err)
	}
	return pages, fs.WalkDir(manual, "man", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		page, err := fs.ReadFile(manual, path)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, entry.Name()), page, 0o644)
		}
		pages++
		return errors.Join(err)
	})
}
