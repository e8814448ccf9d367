package endpoint

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/quorumlock/redlock/internal/plain"
)

// files holds the options of a rediss:// URL that name files with certificates. Their names
// are those of redis-cli's options; go-redis does not know them.
type files struct{ cacert, cert, key string }

// takeFiles removes the files from a query, and reports whether it had any.
func takeFiles(query url.Values) (f files, given bool) {
	for name, value := range map[string]*string{"cacert": &f.cacert, "cert": &f.cert, "key": &f.key} {
		given = given || query.Has(name)
		*value = query.Get(name)
		query.Del(name)
	}
	return f, given
}

// configure makes cfg trust only cacert, and present cert to a server that asks for it. It
// reads all files now; each connection reads cert and key again, as certificates are renewed
// while a client lives.
func (f files) configure(cfg *tls.Config) error {
	if f.cacert != "" {
		text, err := readRegular(f.cacert)
		if err != nil {
			return fmt.Errorf("has a cacert that cannot be read: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return errors.New("has a cacert without a certificate in PEM")
		}
	}
	if f.cert == "" && f.key == "" {
		return nil
	}
	if f.cert == "" || f.key == "" {
		return errors.New("has one of cert and key without the other")
	}
	for name, file := range map[string]string{"cert": f.cert, "key": f.key} {
		if _, err := readRegular(file); err != nil {
			return fmt.Errorf("has a %s that cannot be read: %w", name, err)
		}
	}
	if _, err := tls.LoadX509KeyPair(f.cert, f.key); err != nil {
		return errors.New("has a cert and a key that do not belong together, or are not in PEM")
	}
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		return &pair, err
	}
	return nil
}

// readRegular reads a regular file, which has an end. Its errors do not name the file.
func readRegular(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(file)
	}
	return text, plain.Reason(err)
}
