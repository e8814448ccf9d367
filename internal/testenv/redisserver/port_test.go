package redisserver

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/port"
)

func TestReservedPortOfAStranger(t *testing.T) {
	needServer(t)
	path, err := binary()
	require.NoError(t, err)
	r, err := port.Reserve()
	require.NoError(t, err)
	defer r.Release()
	stranger, err := net.Listen("tcp", r.Addr())
	require.NoError(t, err)
	defer stranger.Close()

	dir := t.TempDir()
	conf := filepath.Join(dir, "redis.conf")
	text := newSettings(nil).redisConf(dir, listen{port: r.Port})
	require.NoError(t, os.WriteFile(conf, []byte(text), 0o600))
	c := command{path: path, args: []string{conf}, dir: dir, ready: "ready to accept connections"}
	_, err = c.run()
	require.ErrorIs(t, err, errPortTaken) // newServer then takes another port
	require.ErrorContains(t, err, fmt.Sprint(r.Port))
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"":        `""`,
		"a b":     `"a b"`,
		`q"\`:     `"q\"\\"`,
		"é\n\x7f": `"\xc3\xa9\x0a\x7f"`,
	} {
		require.Equal(t, want, quote(in))
	}
}
