package redisserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/testenv/port"
)

// masterName is the name under which the Sentinel knows its master.
const masterName = "main"

// Sentinel is one Sentinel (quorum 1) that monitors a master with one replica, and promotes
// the replica when the master has been silent for a second. Replication is asynchronous:
// writes that the replica has not received are lost then.
type Sentinel struct {
	port    *port.Reservation
	dir     string
	process *process
	servers []*Server // first master, first replica
	client  *redis.SentinelClient
	clients closers
}

// StartSentinel starts a master, its replica and their Sentinel, and stops them when the test
// ends. When it returns, the replica is in sync and the Sentinel could promote it. The only
// possible options are RequirePass and Config. They are for the master and the replica; the
// Sentinel itself has no password.
func StartSentinel(tb TB, opts ...Option) *Sentinel {
	tb.Helper()
	return start(tb, func() (*Sentinel, error) { return LaunchSentinel(opts...) }, (*Sentinel).Stop)
}

// MasterName returns the name to ask the Sentinel for.
func (s *Sentinel) MasterName() string { return masterName }

// SentinelAddr returns the Sentinel's own host and port.
func (s *Sentinel) SentinelAddr() string { return s.port.Addr() }

// Master returns the server that the Sentinel regards as the master now, dead or alive.
func (s *Sentinel) Master() (*Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	at, err := s.client.GetMasterAddrByName(ctx, masterName).Result()
	if err != nil {
		return nil, fmt.Errorf("redisserver: sentinel: who is master: %w", err)
	}
	addr := net.JoinHostPort(at[0], at[1])
	for _, server := range s.servers {
		if server.Addr() == addr {
			return server, nil
		}
	}
	return nil, fmt.Errorf("redisserver: sentinel: unknown master %s", addr)
}

// Replica returns the server that is not the master.
func (s *Sentinel) Replica() (*Server, error) {
	master, err := s.Master()
	if err != nil {
		return nil, err
	}
	if master == s.servers[0] {
		return s.servers[1], nil
	}
	return s.servers[0], nil
}

// Failover makes the Sentinel promote the replica while both servers live, and returns when it
// is the master. The old master becomes a replica a little later; until then it accepts
// writes, which are lost.
func (s *Sentinel) Failover() error {
	ask := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		return s.client.Failover(ctx, masterName).Err()
	}
	return s.awaitFailover(ask, ask)
}

// AwaitFailover calls cause, which makes a failover necessary, for example by killing the
// master, and returns when the Sentinel has announced a new one. After an error the failover
// may be under way.
func (s *Sentinel) AwaitFailover(cause func() error) error {
	return s.awaitFailover(cause, func() error { return nil }) // the Sentinel tries again by itself
}

// aborted is the message of a Sentinel that knows of no replica to promote. A Sentinel that
// did not run for half a second thinks so even if the replica is well.
const aborted = "-failover-abort-no-good-slave"

// awaitFailover is AwaitFailover, but calls again each time that the failover is aborted.
func (s *Sentinel) awaitFailover(cause, again func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	announcements := s.client.Subscribe(ctx, "+switch-master", aborted)
	defer announcements.Close()
	for range 2 { // both are subscribed: no message is missed from here on
		if _, err := announcements.Receive(ctx); err != nil {
			return fmt.Errorf("redisserver: sentinel: subscribe: %w", err)
		}
	}
	if err := cause(); err != nil {
		return fmt.Errorf("redisserver: sentinel: cause of failover: %w", err)
	}
	for {
		message, err := announcements.ReceiveMessage(ctx)
		if err != nil {
			return fmt.Errorf("redisserver: sentinel: no failover: %w\n%s", err, s.process.log)
		}
		if message.Channel != aborted {
			return nil
		}
		for err := again(); err != nil; err = again() {
			if ctx.Err() != nil {
				return fmt.Errorf("redisserver: sentinel: failover, again: %w\n%s", err, s.process.log)
			}
			time.Sleep(100 * time.Millisecond) // until the Sentinel has heard from its replica again
		}
	}
}

// Client returns a failover client with go-redis's default options, as changed by configure.
// Stop closes it.
func (s *Sentinel) Client(configure ...func(*redis.FailoverOptions)) *redis.Client {
	options := &redis.FailoverOptions{
		MasterName:    masterName,
		SentinelAddrs: []string{s.SentinelAddr()},
		Password:      s.servers[0].settings.password,
	}
	for _, c := range configure {
		c(options)
	}
	client := redis.NewFailoverClient(options)
	s.clients.add(client)
	return client
}

// Stop closes the clients and ends Sentinel, master and replica for good. Further calls do
// nothing.
func (s *Sentinel) Stop() {
	s.clients.close()
	s.process.kill()
	s.port.Release()
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
	stopAll(s.servers)
}
