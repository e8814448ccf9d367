package child

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const flag = "-child"

// TestMain makes the test's own binary the child, which doubles the numbers that it gets.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == flag {
		if Run(os.Args[2], os.Stdin, os.Stdout, double) != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func double(ctx context.Context, plan []int, parent *Pipe) error {
	if len(plan) == 0 {
		return errors.New("nothing to do")
	}
	for _, n := range plan {
		var heard int
		if err := parent.Hear(ctx, &heard); err != nil {
			return err
		}
		if err := parent.Say(n * heard); err != nil {
			return err
		}
	}
	return nil
}

func TestAChildIsToldAndHeard(t *testing.T) {
	p, err := Start(t.Context(), flag, []int{3, 5})
	require.NoError(t, err)
	for _, want := range []int{6, 10} {
		require.NoError(t, p.Tell(2))
		var said int
		require.NoError(t, p.Hear(&said))
		assert.Equal(t, want, said)
	}
	require.NoError(t, p.End())
}

func TestAChildSaysWhyItFails(t *testing.T) {
	p, err := Start(t.Context(), flag, []int{})
	require.NoError(t, err)
	assert.EqualError(t, p.Hear(nil), "nothing to do")
	assert.Error(t, p.End())
}

// The child waits for a value, and gives up when no more can come.
func TestAChildGivesUpWithoutItsParent(t *testing.T) {
	p, err := Start(t.Context(), flag, []int{1})
	require.NoError(t, err)
	assert.Error(t, p.End())
}
