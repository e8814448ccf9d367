package redisserver

import (
	"crypto/tls"
	"io"
	"net/url"
	"path/filepath"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Client returns a client with go-redis's default options for this server, as changed by
// configure. Stop closes it.
func (s *Server) Client(configure ...func(*redis.Options)) *redis.Client {
	options := &redis.Options{
		Network:   s.Network(),
		Addr:      s.Addr(),
		Password:  s.settings.password,
		TLSConfig: s.settings.trust(),
	}
	for _, c := range configure {
		c(options)
	}
	client := redis.NewClient(options)
	s.clients.add(client)
	return client
}

// URL returns the server's address as redis://, rediss:// or unix://, with the password of
// RequirePass. Clients trust a TLS server's certificate only with [Server.TLSConfig] or
// [Server.CAFile]; "?skip_verify=true" at the end of the URL turns the check off.
func (s *Server) URL() string {
	u := url.URL{Scheme: "redis", Host: s.Addr()}
	switch {
	case s.settings.unix:
		u = url.URL{Scheme: "unix", Path: s.Addr()}
	case s.settings.tls:
		u.Scheme = "rediss"
	}
	if s.settings.password != "" {
		u.User = url.UserPassword("", s.settings.password)
	}
	return u.String()
}

// TLSConfig returns a new configuration with which a client trusts the server; nil without
// TLS.
func (s *Server) TLSConfig() *tls.Config { return s.settings.trust() }

// CAFile returns the path of the certificate (PEM) of the authority that signed the server's;
// empty without TLS.
func (s *Server) CAFile() string {
	if !s.settings.tls {
		return ""
	}
	return filepath.Join(s.dir, caFile)
}

func (s settings) trust() *tls.Config {
	if s.authority == nil {
		return nil
	}
	return s.authority.client()
}

// closers are closed together. One that is added later is closed at once.
type closers struct {
	mu     sync.Mutex
	all    []io.Closer
	closed bool
}

func (c *closers) add(one io.Closer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = one.Close()
		return
	}
	c.all = append(c.all, one)
}

// close ignores errors: the owner of a client may have closed it already.
func (c *closers) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, one := range c.all {
		_ = one.Close()
	}
	c.all = nil
}
