package endpoint_test

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/endpoint"
)

// Options reports a mistake with files before any connection is made. It quotes no path, as a
// path may be a part of a password that was not encoded.
func TestCertificatesThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage")
	require.NoError(t, os.WriteFile(garbage, []byte("garbage"), 0o600))
	gone := filepath.Join(dir, "gone")
	for _, c := range []struct{ url, want string }{
		{"redis://host?cacert=" + garbage, "has a cacert, cert or key, which are for rediss:// alone"},
		{"unix:///tmp/s?key=" + garbage, "has a cacert, cert or key, which are for rediss:// alone"},
		{"rediss://host?cacert=" + gone, "has a cacert that cannot be read: no such file or directory"},
		{"rediss://host?cacert=" + dir, "has a cacert that cannot be read: not a regular file"},
		{"rediss://host?cacert=/dev/zero", "has a cacert that cannot be read: not a regular file"},
		{"rediss://host?cacert=" + garbage, "has a cacert without a certificate in PEM"},
		{"rediss://host?cert=" + garbage, "has one of cert and key without the other"},
		{"rediss://host?key=" + garbage, "has one of cert and key without the other"},
		{"rediss://host?key=" + gone + "&cert=" + garbage, "has a key that cannot be read: no such file or directory"},
		{"rediss://host?key=" + garbage + "&cert=" + garbage, "has a cert and a key that do not belong together, or are not in PEM"},
	} {
		_, err := endpoint.Options(c.url, time.Second)
		assert.EqualError(t, err, c.want, c.url)
	}
}

// The options for certificates do not change how the rest of the URL is read.
func TestCertificatesLeaveTheRestOfTheURLAlone(t *testing.T) {
	password := "p%/@:?#,x"
	opt, err := endpoint.Options("rediss://user:"+url.QueryEscape(password)+"@host/3?cacert=&skip_verify=true&read_timeout=3s", time.Second)
	require.NoError(t, err)
	assert.Equal(t, []any{"host:6379", "user", password, 3, 3 * time.Second}, []any{opt.Addr, opt.Username, opt.Password, opt.DB, opt.ReadTimeout})
	assert.True(t, opt.TLSConfig.InsecureSkipVerify)
	assert.Nil(t, opt.TLSConfig.RootCAs)
}
