package redisserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/quorumlock/redlock/internal/testenv/port"
)

// Names of the files in a server's directory.
const (
	caFile   = "ca.crt"
	certFile = "redis.crt"
	keyFile  = "redis.key"
)

// authority is a throw-away certificate authority and the one certificate that it has signed,
// for all servers on 127.0.0.1. Its own key is not kept.
type authority struct {
	pool              *x509.CertPool
	ca, cert, keyText []byte // PEM
}

func newAuthority() (*authority, error) {
	a, err := sign()
	if err != nil {
		return nil, fmt.Errorf("redisserver: make certificates: %w", err)
	}
	return a, nil
}

func sign() (*authority, error) {
	now := time.Now()
	root := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "redisserver throw-away authority"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "localhost"},
		NotBefore:    root.NotBefore,
		NotAfter:     root.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		// A cluster's servers are clients of each other.
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.ParseIP(port.Loopback)},
	}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, &rootKey.PublicKey, rootKey)
	if err != nil {
		return nil, err
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, root, &leafKey.PublicKey, rootKey)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		return nil, err
	}
	text := func(kind string, der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	a := &authority{
		pool:    x509.NewCertPool(),
		ca:      text("CERTIFICATE", rootDER),
		cert:    text("CERTIFICATE", leafDER),
		keyText: text("PRIVATE KEY", keyDER),
	}
	if !a.pool.AppendCertsFromPEM(a.ca) {
		return nil, errors.New("own certificate refused")
	}
	return a, nil
}

// client returns a configuration with which a client trusts the servers.
func (a *authority) client() *tls.Config {
	return &tls.Config{RootCAs: a.pool, MinVersion: tls.VersionTLS12}
}

// write writes the three files into a server's directory.
func (a *authority) write(dir string) error {
	for name, data := range map[string][]byte{caFile: a.ca, certFile: a.cert, keyFile: a.keyText} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
