package site

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/lab/exact"
	"github.com/quorumlock/redlock/internal/plain"
)

// Export returns the subcommand export.
func Export() *cobra.Command { return newExport(exact.Module) }

func newExport(module compiler) *cobra.Command {
	return &cobra.Command{
		Use:   "export DIR",
		Short: "Write the lab as a static site",
		Long: `export writes the page of redlock-lab serve, and the simulation that it runs,
into a folder. Any web server can serve the folder, below any path; the page
loads nothing from elsewhere. A browser does not run it from a file:// address.

The folder is made if it is not there. It must be empty, or hold an earlier
export, which is replaced. Files that are not of that export stay.

The Go command compiles the simulation from its source, which takes a minute or
two the first time.`,
		Example: "  redlock-lab export public/lab",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return cli.Usagef("want one DIR: %s DIR", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			folder, err := openFolder(args[0])
			if err != nil {
				return err
			}
			defer folder.Close()
			files, err := pageFiles()
			if err != nil {
				return err
			}
			cmd.PrintErrln("compiling the simulation to WebAssembly, which takes a minute or two the first time")
			l := load(cmd.Context(), module)
			if <-l.done; l.err != nil {
				return l.err
			}
			files[moduleName] = l.content
			if err := export(folder, files); err != nil {
				return fmt.Errorf("cannot write to %s: %w", plain.Printable(args[0]), err)
			}
			size, compressed, err := sizes(files)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d files in %s: %.1f MB, compressed by gzip %.1f MB\n",
				len(files)+1, plain.Printable(args[0]), float64(size)/1e6, float64(compressed)/1e6)
			return err
		},
	}
}

// listName is the file that lists an export's files. It shows that a folder holds an export.
const listName = "redlock-lab-files.txt"

// listHead is the first line of the list.
const listHead = "These files were written by redlock-lab export, which replaces them:"

// openFolder makes a folder if it is not there. It refuses one that is neither empty nor holds an
// export.
func openFolder(name string) (*os.Root, error) {
	shown := plain.Printable(name)
	if err := os.MkdirAll(name, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the folder %s: %w", shown, plain.Reason(err))
	}
	folder, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("cannot open the folder %s: %w", shown, plain.Reason(err))
	}
	entries, err := fs.ReadDir(folder.FS(), ".")
	if err == nil && len(entries) > 0 {
		if _, listErr := exported(folder); listErr != nil {
			err = errors.New("it is not empty, and holds no earlier export")
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot export to %s: %w", shown, plain.Reason(err)), folder.Close())
	}
	return folder, nil
}

// exported returns the files that an earlier export has listed.
func exported(folder *os.Root) ([]string, error) {
	list, err := folder.ReadFile(listName)
	if err != nil {
		return nil, err
	}
	head, names, _ := strings.Cut(string(list), "\n")
	if head != listHead {
		return nil, fmt.Errorf("%s is not of an export", listName)
	}
	return strings.Split(strings.TrimSuffix(names, "\n"), "\n"), nil
}

// export writes files into a folder and removes those of an earlier export that are not among them.
// The list comes first, and has the old files until they are gone, so that an export which failed can be
// repeated.
func export(folder *os.Root, files map[string][]byte) error {
	old, err := exported(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	names := slices.Sorted(maps.Keys(files))
	if err := writeList(folder, slices.Concat(old, names)); err != nil {
		return err
	}
	for _, name := range old {
		if _, stays := files[name]; !stays {
			if err := folder.Remove(filepath.FromSlash(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	for _, name := range names {
		if err := folder.MkdirAll(filepath.FromSlash(path.Dir(name)), 0o755); err != nil {
			return err
		}
		if err := folder.WriteFile(filepath.FromSlash(name), files[name], 0o644); err != nil {
			return err
		}
	}
	return writeList(folder, names)
}

func writeList(folder *os.Root, names []string) error {
	slices.Sort(names)
	list := listHead + "\n" + strings.Join(slices.Compact(names), "\n") + "\n"
	return folder.WriteFile(listName, []byte(list), 0o644)
}

// sizes returns the sum of the files' sizes, and the sum of what gzip makes of them. What is compressed
// already stays as it is.
func sizes(files map[string][]byte) (size, compressed int, err error) {
	for name, content := range files {
		size += len(content)
		if path.Ext(name) != ".gz" {
			if content, err = compress(content); err != nil {
				return 0, 0, err
			}
		}
		compressed += len(content)
	}
	return size, compressed, nil
}
