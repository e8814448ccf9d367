package labpage

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// folder is for what the tests of this package share. TestMain removes it.
var folder string

// command builds redlock-lab, once, and returns its path.
var command = sync.OnceValues(func() (string, error) {
	file := filepath.Join(folder, "redlock-lab")
	build := exec.Command("go", "build", "-o", file, "./cmd/redlock-lab")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return file, nil
})

// server is redlock-lab serve.
type server struct {
	address string
	process *exec.Cmd
	errs    bytes.Buffer
}

// serve starts a server, once.
var serve = sync.OnceValues(func() (*server, error) {
	file, err := command()
	if err != nil {
		return nil, err
	}
	s := &server{process: exec.Command(file, "serve", "--port", "0")}
	s.process.Stderr = &s.errs
	out, err := s.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if s.address = regexp.MustCompile(`http://\S+`).FindString(line); err != nil || s.address == "" {
		return nil, fmt.Errorf("the server gave no address: %q %w %w", line, err, s.stop())
	}
	started = s
	// The module takes minutes to compile where that has never been done.
	response, err := http.Get(s.address + "lab.wasm.gz")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("no simulation: %s %w: %.1000s", response.Status, err, body)
	}
	return s, nil
})

// started is the server, if there is one.
var started *server

// stop ends the server as Ctrl-C does.
func (s *server) stop() error {
	if err := s.process.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	if err := s.process.Wait(); err != nil {
		return fmt.Errorf("the server ended with %w: %s", err, &s.errs)
	}
	return nil
}

// run runs redlock-lab outside of the browser, and returns what it prints.
func run(t *testing.T, args ...string) string {
	t.Helper()
	file, err := command()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), file, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		require.Equal(t, 1, cmd.ProcessState.ExitCode(), "redlock-lab %q: %s", args, &errs) // a violation
		require.Contains(t, errs.String(), "the locks did not hold", "redlock-lab %q", args)
	}
	return out.String()
}

// fingerprint returns the fingerprint of a history that redlock-lab makes outside of the browser.
func fingerprint(t *testing.T, args ...string) string {
	t.Helper()
	out := run(t, append([]string{"sim", "--exact", "--quiet"}, args...)...)
	found := regexp.MustCompile(`(?m)^fingerprint ([0-9a-f]{16})$`).FindStringSubmatch(out)
	require.NotNil(t, found, out)
	return found[1]
}
