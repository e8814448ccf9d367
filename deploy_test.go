//go:build unix

package redlock_test

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The container file's own line builds a static, stripped command with the version stamped, and
// the image does not run it as root. .ci/deploy builds the image where there is a
// builder.
func TestContainerFile(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out what builds the command")
	}
	text, err := os.ReadFile("deploy/Dockerfile")
	require.NoError(t, err)
	file := string(text)
	line := func(pattern string) string {
		m := regexp.MustCompile("(?m)^"+pattern+"$").FindAllStringSubmatch(file, -1)
		require.Len(t, m, 1, pattern)
		return m[0][1]
	}
	stages := regexp.MustCompile(`(?m)^FROM \S+:([\d.]+)`).FindAllStringSubmatch(file, -1)
	require.Len(t, stages, 2, "one builds, and the other is what is run")
	gomod, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	assert.Contains(t, string(gomod), "\ngo "+stages[0][1]+".", "its Go is that of go.mod")

	build := line(`RUN (.*go build.*)`)
	built, installed := "/out/redlock", line(`COPY --from=build /out/redlock (\S+)`)
	require.Contains(t, build, " -o "+built+" ")
	assert.Equal(t, `["`+installed+`"]`, line(`ENTRYPOINT (.*)`))
	assert.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, line(`USER (\S+)`), "Kubernetes' runAsNonRoot needs a number")

	command := filepath.Join(t.TempDir(), "redlock")
	cmd := exec.Command("/bin/sh", "-c", strings.Replace(build, built, command, 1))
	cmd.Env = append(os.Environ(), "VERSION=v1.2.3")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(command, "--version").Output()
	require.NoError(t, err)
	assert.Equal(t, "redlock version v1.2.3\n", string(out))
	if runtime.GOOS == "linux" {
		binary, err := elf.Open(command)
		require.NoError(t, err)
		defer binary.Close()
		libraries, err := binary.ImportedLibraries()
		assert.NoError(t, err)
		assert.Empty(t, libraries)
		assert.Nil(t, binary.Section(".symtab"), "stripped")
		assert.Nil(t, binary.Section(".interp"), "static")
	}
}
