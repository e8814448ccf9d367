package site

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/cli/clitest"
)

// started runs serve on a free port, and returns what it says and a function that ends it, which returns
// its exit status and what it wrote to stderr.
func started(t *testing.T, module compiler) (line string, end func() (int, string)) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	r, w := io.Pipe()
	var errs strings.Builder
	status := make(chan int, 1)
	go func() {
		status <- cli.Run(ctx, clitest.Program(newServe(module)), []string{"serve", "--port", "0"}, w, &errs)
		_ = w.Close()
	}()
	out := bufio.NewReader(r)
	line, err := out.ReadString('\n')
	require.NoError(t, err)
	return line, func() (int, string) {
		interrupt()
		rest, err := io.ReadAll(out)
		require.NoError(t, err)
		assert.Empty(t, string(rest))
		return <-status, errs.String()
	}
}

func address(t *testing.T, line string) string {
	t.Helper()
	found := regexp.MustCompile(`\AThe lab is at (http://127\.0\.0\.1:[1-9]\d*/) and ends at Ctrl-C\.\n\z`).FindStringSubmatch(line)
	require.NotNil(t, found, line)
	return found[1]
}

func TestServeServesUntilItIsInterrupted(t *testing.T) {
	line, end := started(t, compiled)
	for _, path := range []string{"", "lab.wasm.gz"} {
		response, err := http.Get(address(t, line) + path)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, response.StatusCode)
		require.NoError(t, response.Body.Close())
	}
	http.DefaultClient.CloseIdleConnections()
	status, errs := end()
	assert.Equal(t, cli.ExitOK, status)
	assert.Empty(t, errs)
	clitest.NothingLeft(t)
}

// An interrupt ends the compiler, and the requests that wait for it.
func TestServeEndsWhileTheModuleCompiles(t *testing.T) {
	asked := make(chan struct{})
	line, end := started(t, func(ctx context.Context) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() })
	go func() {
		defer close(asked)
		response, err := http.Get(address(t, line) + "lab.wasm.gz")
		if err == nil {
			_ = response.Body.Close()
		}
		assert.Error(t, err)
	}()
	status, errs := end()
	<-asked
	assert.Equal(t, cli.ExitOK, status)
	assert.Empty(t, errs)
	clitest.NothingLeft(t)
}

func TestServeSaysWhyThereIsNoModule(t *testing.T) {
	line, end := started(t, func(context.Context) ([]byte, error) { return nil, errors.New("no Go command") })
	response, err := http.Get(address(t, line) + "lab.wasm.gz")
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusInternalServerError, response.StatusCode)
	assert.Equal(t, "no Go command\n", string(text))
	http.DefaultClient.CloseIdleConnections()
	status, _ := end()
	assert.Equal(t, cli.ExitOK, status, "the page was there")
}

func TestServeNamesTheFlagWhenThePortIsTaken(t *testing.T) {
	other, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	port := strconv.Itoa(other.Addr().(*net.TCPAddr).Port)
	code, out, errs := clitest.Run(t, t.Context(), clitest.Program(newServe(compiled)), "serve", "--port", port)
	assert.Equal(t, cli.ExitFailed, code)
	assert.Empty(t, out)
	clitest.AssertOneLine(t, errs)
	assert.Contains(t, errs, "port "+port+" is taken: choose another with --port")
}

func TestServeRefusesWhatItCannotServe(t *testing.T) {
	for says, args := range map[string][]string{
		"--port is 65536": {"--port", "65536"},
		"--port is -1":    {"--port=-1"},
		"http":            {"--port", "http"},
		"no arguments":    {"8080"},
	} {
		code, out, errs := clitest.Run(t, t.Context(), clitest.Program(newServe(compiled)), append([]string{"serve"}, args...)...)
		clitest.AssertUsage(t, says, code, out, errs)
	}
}
