package watch

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/cli/clitest"
)

// parsed returns the flag as a command line sets it.
func parsed(args ...string) (*Flag, error) {
	f := new(Flag)
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Register(set)
	if err := set.Parse(args); err != nil {
		return f, err
	}
	return f, f.Check(set)
}

func TestWatchInterval(t *testing.T) {
	for arg, want := range map[string]time.Duration{"--watch": 2 * time.Second, "--watch=0.1": 100 * time.Millisecond, "--watch=1m": time.Minute} {
		f, err := parsed(arg)
		require.NoError(t, err)
		assert.True(t, f.On())
		assert.Equal(t, want, time.Duration(f.every), arg)
	}
	for _, arg := range []string{"--watch=99ms", "--watch=0", "--watch=-1", "--watch=often"} {
		_, err := parsed(arg)
		assert.ErrorContains(t, err, "--watch", arg)
	}
	f, err := parsed()
	require.NoError(t, err)
	assert.False(t, f.On())
}

// looking looks every interval in virtual time, for so long, and returns what was written.
func looking(t *testing.T, arg string, long time.Duration, watch func(*Flag, context.Context, io.Writer, Look) error, look Look) (written string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f, err := parsed(arg)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), long)
		defer cancel()
		var out strings.Builder
		require.NoError(t, watch(f, ctx, &out, look))
		written = out.String()
	})
	return written
}

func TestWatchWritesALineForEachLook(t *testing.T) {
	begin, looks := time.Time{}, 0
	got := looking(t, "--watch=500ms", 1700*time.Millisecond, (*Flag).Lines, func(_ context.Context, w io.Writer) error {
		if looks++; looks == 1 {
			begin = time.Now()
		}
		_, err := fmt.Fprintln(w, time.Since(begin))
		return err
	})
	assert.Equal(t, "0s\n500ms\n1s\n1.5s\n", got)
}

// A hung master makes a look last for longer than the interval. Looks do not queue up meanwhile.
func TestWatchDoesNotCatchUp(t *testing.T) {
	looks := 0
	looking(t, "--watch=100ms", 1950*time.Millisecond, (*Flag).Lines, func(context.Context, io.Writer) error {
		looks++
		time.Sleep(450 * time.Millisecond)
		return nil
	})
	assert.Equal(t, 5, looks)
}

func TestWatchWithoutATerminalPutsTextsInOrder(t *testing.T) {
	pictures := func(f *Flag, ctx context.Context, out io.Writer, look Look) error {
		return f.Pictures(ctx, out, "redlock status a\x1b[2Jb", look)
	}
	looks := 0
	got := looking(t, "--watch", 3*time.Second, pictures, func(_ context.Context, w io.Writer) error {
		looks++
		_, err := fmt.Fprintln(w, "look", looks)
		return err
	})
	assert.Equal(t, `Every 2s: redlock status a [2Jb, at 2000-01-01T00:00:00Z

look 1

Every 2s: redlock status a [2Jb, at 2000-01-01T00:00:02Z

look 2
`, got)
}

// A look that was interrupted is not shown, and is no error.
func TestWatchInterruptedInALook(t *testing.T) {
	got := looking(t, "--watch", time.Second, (*Flag).Lines, func(ctx context.Context, w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		<-ctx.Done()
		return context.Cause(ctx)
	})
	assert.Empty(t, got)
}

func TestWatchEndsWithAnError(t *testing.T) {
	f, err := parsed("--watch")
	require.NoError(t, err)
	wrong := cli.Usagef("KEY is reserved")
	assert.Equal(t, wrong, f.Lines(t.Context(), io.Discard, func(context.Context, io.Writer) error { return wrong }))
	full := f.Pictures(t.Context(), clitest.FullDisk{}, "redlock nodes", func(context.Context, io.Writer) error { return nil })
	assert.ErrorContains(t, full, "no space left")
}
