package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionOf returns the version of a build in a word. release is the version of a release. If it is
// empty, the result is the version that Go knows, of the module or the checkout.
func versionOf(release string, info *debug.BuildInfo) string {
	switch {
	case release != "":
		return release
	case info != nil && info.Main.Version != "":
		return info.Main.Version
	}
	return "(unknown)"
}

func newVersion(release string) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the module's version and how it was built",
		Args:  NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, ok := debug.ReadBuildInfo()
			if !ok {
				info = &debug.BuildInfo{GoVersion: runtime.Version()}
			}
			return printVersion(cmd.OutOrStdout(), cmd.Root().Name(), release, info)
		},
	}
}

// printVersion prints what is known about a build, and leaves out the rest.
func printVersion(w io.Writer, name, release string, info *debug.BuildInfo) error {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	lines := [][2]string{
		{name, versionOf(release, info)},
		{"module", info.Main.Path},
		{"go", info.GoVersion + " " + settings["GOOS"] + "/" + settings["GOARCH"]},
		{"revision", settings["vcs.revision"]},
		{"committed", settings["vcs.time"]},
	}
	if settings["vcs.modified"] == "true" {
		lines = append(lines, [2]string{"modified", "yes: built from a changed checkout"})
	}
	for _, l := range lines {
		if l[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%-*s %s\n", max(10, len(name)), l[0], l[1]); err != nil {
			return err
		}
	}
	return nil
}
