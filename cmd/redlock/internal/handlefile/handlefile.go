// Package handlefile keeps the handle of a lock in a file. No error quotes a handle, which is a
// secret.
package handlefile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/plain"
	"github.com/quorumlock/redlock/redlock"
)

// Stdin is the name of a file that stands for stdin.
const Stdin = "-"

// most is more than a handle can have, with a line's end.
const most = 64 << 10

// Create makes the file for the handle of a lock that is about to be acquired. So a path that cannot
// be written is found before any master is asked. Only the file's owner may read it. A file that is
// there already is an error, and not replaced: it may have the handle of a lock that is held, which
// nobody could release without it. Remove the file if there is no lock after all.
func Create(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, cli.Usagef("--handle-file %s exists: it may have the handle of a lock that is held; release that, or remove the file", name)
	case err != nil:
		return nil, cli.Usagef("cannot write --handle-file %s: %w", name, plain.Reason(err))
	}
	return file, nil
}

// Write writes the handle into the file that Create has made, and closes it.
func Write(file *os.File, handle string) error {
	_, err := file.WriteString(handle + "\n")
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("cannot write --handle-file %s: %w", file.Name(), plain.Reason(err))
	}
	return nil
}

// Replace puts another handle of the same lock into the file, all at once: a reader finds the old
// handle or the new one. After an error the file is as it was.
func Replace(name, handle string) error {
	// It gets mode 600, and a name that no other program has.
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return plain.Reason(err)
	}
	if err := Write(file, handle); err != nil {
		_ = os.Remove(file.Name())
		return err
	}
	if err := os.Rename(file.Name(), name); err != nil {
		_ = os.Remove(file.Name())
		return errors.Unwrap(err)
	}
	return nil
}

// Handle is a handle that was read, and what it says of its lock.
type Handle struct {
	Text string
	redlock.HandleInfo
}

// Read reads the handle in a file, or in stdin if name is "-". It returns when ctx ends, because a
// file can block for ever; the goroutine that reads it is then left behind. Each other error is a
// usage error. It calls warn, unless that is nil, if others may read the file.
func Read(ctx context.Context, name string, stdin io.Reader, warn func(text string)) (Handle, error) {
	if name == "" {
		return Handle{}, cli.Usagef("--handle-file is empty")
	}
	type result struct {
		text []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		text, err := readAll(name, stdin)
		read <- result{text, err}
	}()
	select {
	case r := <-read:
		if r.err != nil {
			return Handle{}, cli.Usagef("cannot read the handle in %s: %w", called(name), plain.Reason(r.err))
		}
		h := Handle{Text: strings.TrimSpace(string(r.text))}
		info, err := redlock.ParseHandle(h.Text)
		if err != nil {
			return Handle{}, cli.Usagef("%s has no handle that can be used: %s", called(name), strings.TrimPrefix(err.Error(), "redlock: "))
		}
		h.HandleInfo = info
		if warn != nil && exposed(name) != "" {
			warn(exposed(name))
		}
		return h, nil
	case <-ctx.Done():
		return Handle{}, context.Cause(ctx)
	}
}

// Resolve returns the path of the regular file that name stands for, or "-". extend replaces that
// file, and release removes it, so they must not be given a device, a pipe or a symbolic link.
func Resolve(name string) (string, error) {
	if name == Stdin {
		return name, nil
	}
	path, err := filepath.EvalSymlinks(name)
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(path)
	}
	if err != nil {
		return "", cli.Usagef("cannot read the handle in %s: %w", name, plain.Reason(err))
	}
	if !info.Mode().IsRegular() {
		return "", cli.Usagef("--handle-file %s is not a regular file; to read the handle from stdin, give -", name)
	}
	return path, nil
}

func readAll(name string, stdin io.Reader) ([]byte, error) {
	if name != Stdin {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		stdin = file
	}
	return io.ReadAll(io.LimitReader(stdin, most))
}

func called(name string) string {
	if name == Stdin {
		return "stdin"
	}
	return name
}

// exposed warns if others than the file's owner may read or change it. Otherwise it returns "".
func exposed(name string) string {
	info, err := os.Stat(name)
	if name == Stdin || err != nil || !info.Mode().IsRegular() || runtime.GOOS == "windows" {
		return ""
	}
	mode := info.Mode().Perm()
	if mode&0o066 == 0 {
		return ""
	}
	return fmt.Sprintf("%s is a secret, and its mode %04o lets others read or change it: chmod 600", name, mode)
}
