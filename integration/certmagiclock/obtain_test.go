package certmagiclock_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/quorumlock/redlock/integration/certmagiclock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// authority issues certificates after before has returned nil.
type authority struct {
	before func() error
	issued atomic.Int32
}

func (a *authority) IssuerKey() string { return "authority" }

func (a *authority) Issue(_ context.Context, request *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	if err := a.before(); err != nil {
		return nil, err
	}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: request.DNSNames, NotAfter: time.Now().Add(90 * 24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, request.PublicKey, signer)
	if err != nil {
		return nil, err
	}
	a.issued.Add(1)
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// obtain has instances of certmagic, which share a folder, all get the same certificate.
func obtain(t *testing.T, instances int, folder string, masters *redlocktest.Masters, a *authority) {
	t.Helper()
	var wg sync.WaitGroup
	for range instances {
		storage, err := certmagiclock.Wrap(&certmagic.FileStorage{Path: folder}, newLocks(t, masters), ttl)
		require.NoError(t, err)
		cfg := certmagic.Config{Storage: storage, Issuers: []certmagic.Issuer{a}, Logger: zap.NewNop()}
		cache := certmagic.NewCache(certmagic.CacheOptions{
			GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return &cfg, nil },
			Logger:           zap.NewNop(),
		})
		defer cache.Stop()
		magic := certmagic.New(cache, cfg)
		wg.Go(func() { assert.NoError(t, magic.ObtainCertAsync(t.Context(), "example.com")) })
	}
	wg.Wait()
}

// An authority that takes longer than the ttl issues one certificate for five instances.
func TestObtainCertOnce(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a := &authority{before: func() error { time.Sleep(6 * ttl); return nil }}
		obtain(t, 5, folder, redlocktest.StartVirtual(t, 3), a)
		assert.EqualValues(t, 1, a.issued.Load())
	})
}

// The masters forget the lock during the first attempt, and another instance gets it. The next
// attempt of the first one fails, and finds the certificate later.
func TestObtainCertAfterALoss(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		var attempts atomic.Int32
		a := &authority{before: func() error {
			if attempts.Add(1) == 1 {
				forget(masters)
				return errors.New("the authority is busy")
			}
			time.Sleep(5 * time.Minute)
			return nil
		}}
		obtain(t, 2, folder, masters, a)
		assert.EqualValues(t, 2, attempts.Load())
		assert.EqualValues(t, 1, a.issued.Load())
	})
}
