package redisserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/testenv/port"
)

// LaunchSentinel is StartSentinel without a test: the caller must stop it. After an error
// nothing is left running.
func LaunchSentinel(opts ...Option) (_ *Sentinel, err error) {
	settings := newSettings(opts)
	if settings.unix || settings.tls || len(settings.acl) > 0 {
		return nil, errors.New("redisserver: a Sentinel's servers take RequirePass and Config only")
	}
	s := &Sentinel{}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	masters, err := launch(1, settings)
	if err != nil {
		return nil, err
	}
	master := masters[0]
	s.servers = masters
	settings.config = append(settings.config[:len(settings.config):len(settings.config)],
		fmt.Sprintf("replicaof %s %d", port.Loopback, master.Port()))
	replicas, err := launch(1, settings)
	if err != nil {
		return nil, err
	}
	s.servers = append(s.servers, replicas...)
	// A Sentinel learns of replicas from its master's INFO, which it reads at once and then
	// every 10 s. The replica must be in the first one.
	if err := s.awaitSync(); err != nil {
		return nil, err
	}
	if s.dir, err = newDir(); err != nil {
		return nil, err
	}
	if err := s.run(master); err != nil {
		return nil, err
	}
	s.client = redis.NewSentinelClient(&redis.Options{Addr: s.SentinelAddr()})
	s.clients.add(s.client)
	if err := s.hurry(); err != nil {
		return nil, err
	}
	if err := s.awaitReplica(); err != nil {
		return nil, err
	}
	return s, nil
}

// run starts the Sentinel on a port on which no other program listens.
func (s *Sentinel) run(master *Server) error {
	path, err := binary()
	if err != nil {
		return err
	}
	conf := filepath.Join(s.dir, "sentinel.conf")
	for try := 1; ; try++ {
		if s.port, err = port.Reserve(); err != nil {
			return err
		}
		if err := os.WriteFile(conf, []byte(s.sentinelConf(master)), 0o600); err != nil {
			return fmt.Errorf("redisserver: %w", err)
		}
		c := command{path: path, args: []string{conf, "--sentinel"}, dir: s.dir, ready: "+monitor"}
		s.process, err = c.run()
		if err == nil {
			return awaitPing("tcp", s.port.Addr(), nil)
		}
		if try == portTries || !errors.Is(err, errPortTaken) {
			return err
		}
		s.port.Release()
	}
}

func (s *Sentinel) sentinelConf(master *Server) string {
	lines := []string{
		"daemonize no",
		"dir " + quote(s.dir),
		"bind " + port.Loopback,
		fmt.Sprintf("port %d", s.port.Port),
		fmt.Sprintf("sentinel monitor %s %s %d 1", masterName, port.Loopback, master.Port()),
		"sentinel down-after-milliseconds " + masterName + " 1000",
		"sentinel failover-timeout " + masterName + " 2000",
	}
	if password := master.settings.password; password != "" {
		lines = append(lines, "sentinel auth-pass "+masterName+" "+quote(password))
	}
	return strings.Join(lines, "\n") + "\n"
}

// hurry shortens the Sentinel's periods for PING (1 s by default), INFO (10 s) and publishing.
// After four publish periods it decides that a master that came back is no longer one.
// SENTINEL DEBUG exists since Redis 7.0.
//
// The Sentinel needs shorter periods to work correctly. If down-after is one PING period or
// less, it counts a link as down before its first PING, and fails over from a healthy master.
// And it promotes no replica whose INFO is older than five INFO periods, while it asks the
// replicas of a dead master once a second.
func (s *Sentinel) hurry() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	cmd := redis.NewStatusCmd(ctx, "sentinel", "debug", "ping-period", 300, "info-period", 200, "publish-period", 250)
	_ = s.client.Process(ctx, cmd)
	if err := cmd.Err(); err != nil {
		return fmt.Errorf("redisserver: sentinel: set periods: %w", err)
	}
	return nil
}

// awaitSync returns when the master reports the replica as online.
func (s *Sentinel) awaitSync() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	client := s.servers[0].Client()
	return poll(startTimeout, 10*time.Millisecond, func() error {
		info, err := client.Info(ctx, "replication").Result()
		if err == nil && !strings.Contains(info, "state=online") {
			err = errors.New("not in sync:\n" + info)
		}
		if err != nil {
			return fmt.Errorf("redisserver: replica: %w", err)
		}
		return nil
	})
}

// awaitReplica returns when the Sentinel knows a replica that it could promote.
func (s *Sentinel) awaitReplica() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return poll(startTimeout, 20*time.Millisecond, func() error {
		replicas, err := s.client.Replicas(ctx, masterName).Result()
		if err == nil && !(len(replicas) == 1 && replicas[0]["flags"] == "slave" && replicas[0]["master-link-status"] == "ok") {
			err = fmt.Errorf("no replica to promote among %v", replicas)
		}
		if err != nil {
			return fmt.Errorf("redisserver: sentinel: %w", err)
		}
		return nil
	})
}
