package exact

import (
	"encoding/binary"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The generator gives the published numbers, however few bytes are read at a time.
func TestTheHostsRandomNumbersAreThoseOfSplitMix64(t *testing.T) {
	var host host
	var read []byte
	for n := range 7 {
		part := make([]byte, n)
		_, err := io.ReadFull(&host, part)
		require.NoError(t, err)
		read = append(read, part...)
	}
	assert.Equal(t, uint64(0xe220a8397b1dcdaf), binary.LittleEndian.Uint64(read))
	assert.Equal(t, uint64(0x6e789e6aa1b965f4), binary.LittleEndian.Uint64(read[8:]))
}

func TestTheHostsClockGoesOn(t *testing.T) {
	var host host
	before := host.now()
	assert.Greater(t, host.now(), before)
	host.sleep(2e9)
	sec, nsec := host.wall()
	assert.Equal(t, int64(946684802), sec)
	assert.Equal(t, int32(3*step), nsec)
}
