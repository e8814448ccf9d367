package redlock

import (
	"math"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/internal/endpoint"
	"github.com/quorumlock/redlock/redlock/internal/conn"
)

// The clients that Open makes wait for a silent node for twice the NodeTimeout, however long that
// is.
func TestOpenWaitsForTwiceTheNodeTimeout(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		0:                     time.Second,
		time.Millisecond:      time.Second,
		time.Second:           2 * time.Second,
		math.MaxInt64 / 2:     math.MaxInt64 - 1,
		math.MaxInt64/2 + 1:   math.MaxInt64,
		math.MaxInt64 / 4 * 3: math.MaxInt64,
		math.MaxInt64:         math.MaxInt64,
	} {
		cfg := Config{NodeTimeout: timeout}
		assert.Equal(t, want, cfg.withDefaults().patience(), timeout)
		opt, err := endpoint.Options("redis://host", cfg.withDefaults().patience())
		assert.NoError(t, err)
		client := redis.NewClient(opt)
		assert.Equal(t, want, client.Options().ReadTimeout)
		assert.GreaterOrEqual(t, client.Options().PoolTimeout, want, "go-redis' default is a second more, and overflows")
		assert.NoError(t, client.Close())
	}
}

// A URL may hold a password. If its special characters were not encoded, any part of the URL may
// belong to it. So the canary is put at any place of the URL, and no error may show it. If Open
// accepts a URL, the client must be for the server that net/url reads in it.
func FuzzOpen(f *testing.F) {
	for _, s := range []string{
		"redis://user:@localhost:6379/0?dial_timeout=1s",
		"redis://:p%40ss@h/3",
		"redis://:a:b@h:1",
		"redis://user@h",
		"redis://@h",
		"redis://:a@b@h:1/2",
		"redis://:12/34@h:6379",
		"redis://:12?34@h:6379",
		"redis://:12#34@h:6379",
		"redis://:%zz@h",
		"redis://h:port",
		"redis://h:0",
		"redis://h:65536",
		"redis://",
		"redis:///5",
		"redis://h/-1",
		"redis://h/1?db=2",
		"redis://h?db=2&protocol=2&pool_size=65536",
		"redis://h?pool_size=65537",
		"redis://h?pool_size=-5",
		"redis://h?pool_size=9223372036854775807",
		"redis://h?read_timeout=-1",
		"redis://h?read_timeout=3s&write_timeout=-1&max_retries=3&min_idle_conns=9",
		"redis://h?addr=x&password=y",
		"redis://h?client_name=x",
		"rediss://[::1]:1",
		"rediss://[fe80::1%25eth0]",
		"rediss://h?skip_verify=true",
		"REDIS://h",
		"unix:///tmp/s?db=1",
		"unix://user:@/tmp/s",
		"unix://:12/34@/tmp/s",
		"unix://:12@34/tmp/s",
		"unix:///12@/tmp/s",
		"unix:///tmp/%40s",
		"unix:// ",
		"http://:@h",
		"h:6379",
		"",
	} {
		f.Add(s, uint8(strings.IndexByte(s, '@')))
		f.Add(s, uint8(len(s)))
	}
	f.Fuzz(func(t *testing.T, raw string, at uint8) {
		const canary = "c4nary"
		i := min(int(at), len(raw))
		for _, raw := range []string{raw, raw[:i] + canary + raw[i:]} {
			r, err := Open([]string{raw}, Config{})
			if err != nil {
				if r != nil {
					t.Errorf("%q: %v and %v", raw, r, err)
				}
				if !strings.HasPrefix(err.Error(), "redlock: urls[0] ") || strings.Contains(err.Error(), canary) {
					t.Errorf("%q: %v", raw, err)
				}
				continue
			}
			checkServer(t, raw, r.nodes[0], canary)
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func checkServer(t *testing.T, raw string, n *conn.Node, secret string) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Errorf("%q: accepted, and net/url says %v", raw, err)
		return
	}
	opt := n.Client().Options()
	password, _ := u.User.Password()
	if opt.Username != u.User.Username() || opt.Password != password {
		t.Errorf("%q: user %q, password %q", raw, opt.Username, opt.Password)
	}

	network, addr := "unix", u.Path
	if u.Scheme != "unix" {
		host, port := u.Hostname(), u.Port()
		if host == "" {
			host = "localhost"
		}
		if port == "" {
			port = "6379"
		}
		if p, err := strconv.ParseUint(port, 10, 16); err != nil || p == 0 {
			t.Errorf("%q: port %q", raw, port)
		}
		network, addr = "tcp", net.JoinHostPort(host, port)
		if (opt.TLSConfig != nil) != (u.Scheme == "rediss") {
			t.Errorf("%q: TLS is %v", raw, opt.TLSConfig)
		} else if opt.TLSConfig != nil && opt.TLSConfig.ServerName != host && !opt.TLSConfig.InsecureSkipVerify {
			t.Errorf("%q: the certificate is to be %q's", raw, opt.TLSConfig.ServerName)
		}
	}
	if opt.Network != network || opt.Addr != addr || n.Addr != addr {
		t.Errorf("%q: %s %q, shown as %q; want %s %q", raw, opt.Network, opt.Addr, n.Addr, network, addr)
	}
	// Errors show the address. Text before an @ is user information, even if net/url has seen the
	// end of a host in it, unless the @ is in an option.
	front, _, _ := strings.Cut(raw, "?")
	if i := strings.LastIndexByte(front, '@'); i >= 0 && strings.Contains(front[:i], secret) && strings.Contains(n.Addr, secret) {
		t.Errorf("%q: is shown as %q", raw, n.Addr)
	}
	if opt.PoolSize < 1 || opt.PoolSize > 1<<16 {
		t.Errorf("%q: a pool of %d", raw, opt.PoolSize)
	}
	if opt.DB < 0 {
		t.Errorf("%q: database %d", raw, opt.DB)
	}
	if !opt.ContextTimeoutEnabled || opt.MaxRetries > 0 || opt.MinIdleConns != 0 {
		t.Errorf("%q: %+v", raw, opt)
	}
}
