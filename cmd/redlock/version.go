package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is the version of a release, set by the linker (-X main.release=v1.2.3). A build
// without it has the version that Go knows, of the module or the checkout.
var release string

// versionOf is the version of a build, in a word.
func versionOf(info *debug.BuildInfo) string {
	switch {
	case release != "":
		return release
	case info != nil && info.Main.Version != "":
		return info.Main.Version
	}
	return "(unknown)"
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the module's version and how it was built",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, ok := debug.ReadBuildInfo()
			if !ok {
				info = &debug.BuildInfo{GoVersion: runtime.Version()}
			}
			return printVersion(cmd.OutOrStdout(), info)
		},
	}
}

// printVersion leaves out what the build does not know.
func printVersion(w io.Writer, info *debug.BuildInfo) error {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	lines := [][2]string{
		{"redlock", versionOf(info)},
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
		if _, err := fmt.Fprintf(w, "%-10s %s\n", l[0], l[1]); err != nil {
			return err
		}
	}
	return nil
}
