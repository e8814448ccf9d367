package redisserver

import (
	"fmt"
	"strings"

	"github.com/quorumlock/redlock/internal/testenv/port"
)

// listen is where a server listens.
type listen struct {
	port, bus int    // 0 for none
	socket    string // path of the unix socket; empty on TCP
}

// redisConf returns the text of redis.conf for one server.
func (s settings) redisConf(dir string, at listen) string {
	var b strings.Builder
	line := func(name string, values ...string) {
		b.WriteString(name)
		for _, v := range values {
			b.WriteByte(' ')
			b.WriteString(quote(v))
		}
		b.WriteByte('\n')
	}
	line("daemonize", "no")
	line("dir", dir)
	line("save", "")
	line("appendonly", "no")
	line("bind", port.Loopback)
	// Serve a replica at once: by default a master waits 5 s for others.
	line("repl-diskless-sync-delay", "0")
	switch {
	case s.unix:
		line("port", "0")
		line("unixsocket", at.socket)
		line("unixsocketperm", "700")
	case s.tls:
		line("port", "0")
		line("tls-port", fmt.Sprint(at.port))
		line("tls-cert-file", certFile)
		line("tls-key-file", keyFile)
		line("tls-ca-cert-file", caFile)
		line("tls-auth-clients", "no")
	default:
		line("port", fmt.Sprint(at.port))
	}
	if s.cluster {
		line("cluster-enabled", "yes")
		line("cluster-port", fmt.Sprint(at.bus))
		line("cluster-config-file", "nodes.conf")
		line("cluster-announce-ip", port.Loopback)
		line("cluster-node-timeout", "5000")
		if s.tls {
			line("tls-cluster", "yes")
		}
	}
	if s.password != "" {
		line("requirepass", s.password)
		line("masterauth", s.password)
	}
	for _, user := range s.acl {
		b.WriteString("user " + strings.TrimPrefix(user, "user ") + "\n")
	}
	for _, l := range s.config {
		b.WriteString(l + "\n")
	}
	return b.String()
}

// quote quotes a value so that redis.conf's parser returns it byte for byte.
func quote(v string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(v) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
