package faultlink

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTransitAddsNoDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlow(NewPath(), ToServer)
		begin := time.Now()
		for _, due := range []time.Duration{3, 3, 1, 4} {
			f.send(packet{data: []byte("x"), due: begin.Add(due)})
		}
		for _, want := range []time.Duration{3, 3, 3, 4} {
			_, err := f.receive(nil)
			require.NoError(t, err)
			require.Equal(t, want, time.Since(begin))
		}
	})
}
