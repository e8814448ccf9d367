package redisserver

// An Option changes the configuration of servers.
type Option func(*settings)

type settings struct {
	password  string
	acl       []string
	unix      bool
	tls       bool
	authority *authority
	cluster   bool
	config    []string
}

func newSettings(opts []Option) settings {
	var s settings
	for _, opt := range opts {
		opt(&s)
	}
	return s
}

// RequirePass protects the default user with a password. Clients made by [Server.Client] use
// it.
func RequirePass(password string) Option {
	return func(s *settings) { s.password = password }
}

// ACL adds users, each line as in redis.conf: "user alice on >secret ~* +@all". The leading
// word user may be omitted.
func ACL(lines ...string) Option {
	return func(s *settings) { s.acl = append(s.acl, lines...) }
}

// UnixSocket makes servers listen on a unix socket in their directory and on no TCP port. Addr
// then returns the path of the socket.
func UnixSocket() Option {
	return func(s *settings) { s.unix = true }
}

// TLS makes servers use TLS only, with a certificate for 127.0.0.1 and localhost. Its
// throw-away authority is shared by the servers of one Start. Clients need no certificate.
func TLS() Option {
	return func(s *settings) { s.tls = true }
}

// Config adds lines to redis.conf. They come last and so override the package's own.
func Config(lines ...string) Option {
	return func(s *settings) { s.config = append(s.config, lines...) }
}
