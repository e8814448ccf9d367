// Package plain says in plain words what went wrong: it words errors of a connection, and makes
// any error one line for stderr.
package plain

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"
)

// Error returns an error that describes in plain words what went wrong with a connection, and
// wraps err. The texts of package net and crypto/tls name those packages' own parts instead.
// Error returns any other error as it is.
func Error(err error) error {
	if text := words(err); text != "" {
		return &plainError{text, err}
	}
	return err
}

type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.err }

func words(err error) string {
	var (
		name      *net.DNSError
		noTLS     tls.RecordHeaderError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to the host"
	case errors.As(err, &name) && name.IsNotFound:
		return "no such host name"
	case errors.As(err, &name):
		return "the name service does not answer for the host"
	case errors.As(err, &noTLS):
		return "the server does not speak TLS (redis:// in place of rediss://?)"
	case errors.As(err, &authority):
		return "the server's certificate is signed by an unknown authority (cacert=FILE in the URL?)"
	case errors.As(err, &host):
		return "the server's certificate is for another host name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the server's certificate has expired, or is not valid yet"
	case err != nil && strings.HasSuffix(err.Error(), "tls: certificate required"):
		return "the server wants a certificate of the client's (cert=FILE&key=FILE in the URL)"
	case Closed(err):
		return "closed by the server"
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "dial" && op.Net == "unix" {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "there is no such socket"
		case errors.Is(err, fs.ErrPermission):
			return "no permission to use the socket"
		}
	}
	return ""
}

// Closed reports whether the server has ended the connection.
func Closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
