// Package exact runs the simulation of package sim so that the same source and the same Go release
// make the same history of a seed, to the byte, on every machine.
//
// Natively the scheduler of Go decides what happens at one instant, and on a busy machine it may
// decide otherwise. So the same code runs here as WebAssembly, which has one thread and no preemption,
// and gets its clock and its random numbers from the host. This host's clock goes on by a fixed step
// whenever it is read, and its random numbers are always the same. Each run has an instance of its own,
// with fresh memory.
package exact

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/quorumlock/redlock/internal/lab/sim"
)

// Lab runs simulations. It cannot be closed: it is for the life of a process.
type Lab struct {
	runtime wazero.Runtime
	guest   wazero.CompiledModule
}

// Open compiles the simulation. It needs the source of this module, and the Go command. The first call
// on a machine takes about a minute and a half, later ones some seconds.
func Open(ctx context.Context) (*Lab, error) {
	module, err := Module(ctx)
	if err != nil {
		return nil, err
	}
	config := wazero.NewRuntimeConfig()
	if dir, err := os.UserCacheDir(); err == nil {
		// Without a cache each call compiles anew.
		if cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(dir, "redlock-lab")); err == nil {
			config = config.WithCompilationCache(cache)
		}
	}
	l := &Lab{runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, l.runtime); err != nil {
		return nil, err
	}
	if l.guest, err = l.runtime.CompileModule(ctx, module); err != nil {
		return nil, err
	}
	return l, nil
}

// Run simulates one seed, as [sim.Run] does. It returns an error if the config is invalid, if ctx ends,
// or if the simulation crashes. If ctx ends, Run returns at once, but the simulation runs on in the background
// until it is over or the process ends. To make it stoppable, wazero would check ctx in every loop, and
// every run would take twice as long.
func (l *Lab) Run(ctx context.Context, c sim.Config) (sim.Result, error) {
	if _, err := sim.Draw(c); err != nil {
		return sim.Result{}, err
	}
	if ctx.Err() != nil {
		return sim.Result{}, context.Cause(ctx)
	}
	var result sim.Result
	over := make(chan error, 1)
	go func() { over <- l.run(c, &result) }()
	select {
	case err := <-over:
		return result, err
	case <-ctx.Done():
		return sim.Result{}, context.Cause(ctx)
	}
}

// run simulates a valid config.
func (l *Lab) run(c sim.Config, result *sim.Result) error {
	const prefix = `{"kind":"result",`
	var answer struct{ Result *sim.Result }
	p, err := l.start(c.Query(), func(line []byte) error {
		if !bytes.HasPrefix(line, []byte(prefix)) {
			return nil // what a viewer would see
		}
		answer.Result = result
		return json.Unmarshal(line, &answer)
	})
	if err != nil {
		return err
	}
	defer p.stop()
	if answer.Result == nil {
		return errors.New("the simulation gave no result")
	}
	return nil
}
