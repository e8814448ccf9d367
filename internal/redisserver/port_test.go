package redisserver

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
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
		r, err := reserve()
		require.NoError(t, err)
		defer r.release()
		require.False(t, seen[r.port])
		seen[r.port] = true
	}
}

func TestReservedPortOfAStranger(t *testing.T) {
	needServer(t)
	path, err := binary()
	require.NoError(t, err)
	r, err := reserve()
	require.NoError(t, err)
	defer r.release()
	stranger, err := net.Listen("tcp", r.addr())
	require.NoError(t, err)
	defer stranger.Close()

	dir := t.TempDir()
	conf := filepath.Join(dir, "redis.conf")
	text := newSettings(nil).redisConf(dir, listen{port: r.port})
	require.NoError(t, os.WriteFile(conf, []byte(text), 0o600))
	c := command{path: path, args: []string{conf}, dir: dir, ready: "ready to accept connections"}
	_, err = c.run()
	require.ErrorIs(t, err, errPortTaken) // newServer then takes another
	require.ErrorContains(t, err, fmt.Sprint(r.port))
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
