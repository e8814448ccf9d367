package sqltest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

// patience is longer than any test takes on a loaded machine.
const patience = 40 * time.Second

// server is a database server that this test binary has started.
type server struct {
	dir  string // the server's own directory, with its socket
	log  output
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has been waited for
}

// servers are stopped when all tests have ended.
var servers struct {
	sync.Mutex
	all []*server
}

func TestMain(m *testing.M) {
	status := m.Run()
	servers.Lock()
	for _, s := range servers.all {
		s.stop()
	}
	os.Exit(status)
}

// newServer makes the directory of a server. On an error nothing is left.
func newServer() (*server, error) {
	// Do not use the test's own directory: its name would make the path of a socket too long,
	// and only root may enter it.
	dir, err := os.MkdirTemp("", "fence-")
	if err != nil {
		return nil, err
	}
	if uid, gid, ok := servant(); ok {
		if err := os.Chown(dir, uid, gid); err != nil {
			_ = os.RemoveAll(dir)
			return nil, err
		}
	}
	return &server{dir: dir}, nil
}

// find looks for a program in PATH and then in the directories that the patterns match.
func find(program, install string, patterns ...string) (path string, err error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	for _, pattern := range patterns {
		directories, _ := filepath.Glob(pattern)
		for _, d := range directories {
			if path, err := exec.LookPath(filepath.Join(d, program)); err == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("no %s in PATH or %v; sh .ci/test installs it, or: %s", program, patterns, install)
}

// servant returns the ids of user nobody if we are root, as the servers refuse to run as root.
func servant() (uid, gid int, ok bool) {
	if os.Geteuid() != 0 {
		return 0, 0, false
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return 0, 0, false
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	return uid, gid, err1 == nil && err2 == nil
}

func (s *server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = s.dir
	// Pass on no settings of the caller's, and no locale but C.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "TMPDIR=" + s.dir, "LC_ALL=C"}
	cmd.Stdout, cmd.Stderr = &s.log, &s.log
	limit(cmd)
	return cmd
}

// run runs a program that makes the server's files.
func (s *server) run(program string, args ...string) error {
	if err := s.command(program, args...).Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, s.log.String())
	}
	return nil
}

// start starts the server and returns when db answers. A thread of its own starts the process
// and waits for it: on Linux the end of that thread ends the process, so that no server
// survives a killed test.
func (s *server) start(program string, args []string, db *sql.DB) error {
	s.cmd = s.command(program, args...)
	s.done = make(chan struct{})
	started := make(chan error, 1)
	go func() {
		defer close(s.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait() // the log shows how it ended
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := poll(ctx, func() error {
		select {
		case <-s.done:
			return final{errors.New("the server has ended")}
		default:
			return db.PingContext(ctx)
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, s.log.String())
	}
	return nil
}

// stop ends the process and removes its directory.
func (s *server) stop() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Signal(quit)
		select {
		case <-s.done:
		case <-time.After(10 * time.Second):
			_ = s.cmd.Process.Kill()
			<-s.done
		}
	}
	_ = os.RemoveAll(s.dir)
}

// launch makes a server once for all tests. If that fails, each of these tests fails.
func launch(make func() (*server, func(options string) *sql.DB, error)) func(t *testing.T, options string) *sql.DB {
	once := sync.OnceValues(func() (func(string) *sql.DB, error) {
		s, open, err := make()
		if s != nil {
			servers.Lock()
			defer servers.Unlock()
			servers.all = append(servers.all, s)
		}
		return open, err
	})
	return func(t *testing.T, options string) *sql.DB {
		t.Helper()
		if testing.Short() {
			t.Skip("-short leaves out the tests on database servers")
		}
		open, err := once()
		if err != nil {
			t.Fatal(err)
		}
		return open(options)
	}
}

// final marks an error after which poll must not try again.
type final struct{ error }

// poll repeats try at short intervals until it succeeds, fails with a final error, or ctx ends.
// It polls because no event reports that a server begins to answer, or a session to wait.
func poll(ctx context.Context, try func() error) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		var f final
		if err == nil || errors.As(err, &f) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// output collects the text that a server prints.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
