package endpoint

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// maxPool bounds a URL's pool_size: go-redis panics if that is too large, or needs too much
// memory. A lock needs one connection.
const maxPool = 1 << 16

// parse parses a URL and checks its options. It never passes on a parser's error, which may
// quote any part of the URL: a password with a character that should have been encoded can be
// in any part.
func parse(raw string) (*redis.Options, error) {
	if raw == "" {
		return nil, errors.New("is empty")
	}
	scheme, _, found := strings.Cut(raw, "://")
	if !found || (scheme != "redis" && scheme != "rediss" && scheme != "unix") {
		return nil, errors.New("does not begin with redis://, rediss:// or unix://")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("is not a URL (are special characters of the password percent-encoded?)")
	}
	// With an unencoded # or @ in a password, a part of the password would be dialled, and
	// shown, as a host or a path.
	if strings.Contains(raw, "#") {
		return nil, errors.New("contains a #; in a password it is %23")
	}
	if scheme == "unix" && (u.Host != "" || strings.Contains(u.Path, "@")) {
		return nil, errors.New("has no absolute socket path after the user (in a password / is %2F and @ is %40)")
	}
	if scheme == "unix" && u.Path == "" {
		return nil, errors.New("has no socket path")
	}
	if port, err := strconv.Atoi(u.Port()); u.Port() != "" && (err != nil || port < 1 || port > 65535) {
		return nil, errors.New("has a port that is not in [1, 65535]")
	}
	query := u.Query()
	certificates, given := takeFiles(query)
	if given {
		if scheme != "rediss" {
			return nil, errors.New("has a cacert, cert or key, which are for rediss:// alone")
		}
		u.RawQuery = query.Encode()
		raw = u.String()
	}
	opt, err := redis.ParseURL(raw)
	if err != nil {
		return nil, errors.New("has a path or query that is not understood (want /db and the options of redis.ParseURL)")
	}
	if opt.DB < 0 {
		return nil, errors.New("has a negative database number")
	}
	if opt.PoolSize < 0 || opt.PoolSize > maxPool {
		return nil, fmt.Errorf("has a pool_size that is not in [0, %d]", maxPool)
	}
	if given {
		if err := certificates.configure(opt.TLSConfig); err != nil {
			return nil, err
		}
	}
	return opt, nil
}
