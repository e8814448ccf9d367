package serverinfo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFields(t *testing.T) {
	require.Equal(t, map[string]string{"role": "master", "os": "Linux: x", "empty": "", "last": "1"},
		Fields("# Server\r\nrole:master\r\nos:Linux: x\nempty:\r\n\r\nnonsense\r\nlast:1"))
	require.Empty(t, Fields(""))
}
