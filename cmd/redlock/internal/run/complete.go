package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// completeCommand completes the command of run, which follows the --: its name from PATH, and its
// arguments as files.
func completeCommand(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	command := 1 // index of its name among the arguments
	if cmd.ArgsLenAtDash() == 0 {
		command = 2 // after -- KEY --
	}
	switch {
	case len(args) < command || !slices.Contains(os.Args, "--"): // cobra adds a -- of its own
		return nil, cobra.ShellCompDirectiveNoFileComp // the KEY, which only the masters know
	case len(args) > command || strings.ContainsRune(word, filepath.Separator):
		return nil, cobra.ShellCompDirectiveDefault
	}
	return programsNamed(word), cobra.ShellCompDirectiveNoFileComp
}

// programsNamed returns the names of programs in PATH that begin with prefix.
func programsNamed(prefix string) (names []string) {
	for _, folder := range filepath.SplitList(os.Getenv("PATH")) {
		files, _ := filepath.Glob(filepath.Join(folder, prefix+"*"))
		for _, file := range files {
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				names = append(names, filepath.Base(file))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
