package port

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSearchRange(t *testing.T) {
	for _, c := range []struct {
		name                   string
		first, last, low, high int
	}{
		{"Linux", 32768, 60999, 20000, 32768},
		{"IANA", 49152, 65535, 20000, 49152},
		{"starts low", 10000, 65535, 1024, 10000},
		{"room above only", 1024, 60000, 60001, 65536},
		{"everything", 1024, 65535, 20000, 32768},
	} {
		t.Run(c.name, func(t *testing.T) {
			low, high := searchRange(c.first, c.last)
			require.Equal(t, [2]int{c.low, c.high}, [2]int{low, high})
		})
	}
}

func TestReservationsDiffer(t *testing.T) {
	seen := map[int]bool{}
	for range 200 {
		r, err := Reserve()
		require.NoError(t, err)
		defer r.Release()
		require.False(t, seen[r.Port])
		seen[r.Port] = true
	}
}
