package exact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Module compiles the simulation for WebAssembly and returns the module. It needs the source of this
// module, and the Go command, which keeps what it has compiled: the first call takes about a minute, a
// later one a second.
func Module(ctx context.Context) ([]byte, error) {
	_, file, _, _ := runtime.Caller(0)
	dir, err := source(file)
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "redlock-lab")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	module := filepath.Join(temp, "guest.wasm")
	// -trimpath makes the module the same wherever the source is. The paths would otherwise be part of
	// the module's memory, whose layout the history depends on.
	cmd := exec.CommandContext(ctx, "go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", module, "./guest")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off", "GOFLAGS=-trimpath -buildvcs=false", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cannot build the simulation for WebAssembly: %w: %s", err, bytes.TrimSpace(out))
	}
	return os.ReadFile(module)
}

// source returns the directory of the package that has this file.
func source(file string) (dir string, err error) {
	dir = filepath.Dir(file)
	if _, err := os.Stat(filepath.Join(dir, "guest", "main.go")); err != nil {
		return "", errors.New("an exact run compiles the simulation from its source, which this program cannot find: use go run ./cmd/redlock-lab in a clone")
	}
	return dir, nil
}
