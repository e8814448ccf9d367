package redisserver

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// awaitPing returns when the server answers PING. The first try usually succeeds, because a
// server that has logged that it is ready listens.
func awaitPing(network, addr string, config *tls.Config) error {
	return poll(startTimeout, 10*time.Millisecond, func() error {
		reply, err := ping(network, addr, config)
		if err != nil {
			return fmt.Errorf("redisserver: ping %s: %w", addr, err)
		}
		// A refusal (NOAUTH, NOPERM) is an answer too.
		if strings.HasPrefix(reply, "-LOADING") {
			return errors.New("redisserver: ping " + addr + ": " + reply[1:])
		}
		return nil
	})
}

// ping sends PING without a Redis client, whose handshake would depend on the server's users.
func ping(network, addr string, config *tls.Config) (string, error) {
	const limit = 5 * time.Second
	dialer := &net.Dialer{Timeout: limit}
	var conn net.Conn
	var err error
	if config != nil {
		conn, err = tls.DialWithDialer(dialer, network, addr, config)
	} else {
		conn, err = dialer.Dial(network, addr)
	}
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return "", err
	}
	reply, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(reply), err
}
