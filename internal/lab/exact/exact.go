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
	"fmt"
	"os"
	"path/filepath"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

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
	module, err := build(ctx)
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
	question, err := json.Marshal(c)
	if err != nil {
		return err
	}
	var answer, said bytes.Buffer
	var host host
	ctx := context.Background()
	guest, err := l.runtime.InstantiateModule(ctx, l.guest, wazero.NewModuleConfig().
		WithName(""). // without a name there may be several
		WithArgs("guest").
		WithStdin(bytes.NewReader(question)).WithStdout(&answer).WithStderr(&said).
		WithRandSource(&host).
		WithWalltime(host.wall, sys.ClockResolution(step)).
		WithNanotime(host.now, sys.ClockResolution(step)).
		WithNanosleep(host.sleep))
	if guest != nil {
		defer guest.Close(ctx)
	}
	if exit := (*sys.ExitError)(nil); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 0) {
		return fmt.Errorf("the simulation crashed: %w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	if err := json.Unmarshal(answer.Bytes(), result); err != nil {
		return fmt.Errorf("the simulation gave no result: %w", err)
	}
	return nil
}

// step is by how much the clock goes on at each reading, in nanoseconds. The runtime of the guest waits
// for it to go on.
const step = 1000

// host is what the guest's runtime sees of the world. The simulation has a virtual clock, and random
// numbers that are drawn from the seed.
type host struct {
	time   int64
	random uint64 // the state of the generator
	word   uint64 // what Read has not used yet of the last number,
	left   int    // and how many bytes that is
}

// Read reads random bytes of the SplitMix64 generator (Steele, Lea and Flood 2014). It is short, so that
// another host can have the same.
func (h *host) Read(p []byte) (int, error) {
	for i := range p {
		if h.left == 0 {
			h.random += 0x9e3779b97f4a7c15
			z := h.random
			z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
			z = (z ^ z>>27) * 0x94d049bb133111eb
			h.word, h.left = z^z>>31, 8
		}
		p[i] = byte(h.word)
		h.word >>= 8
		h.left--
	}
	return len(p), nil
}

func (h *host) now() int64 {
	h.time += step
	return h.time
}

// wall returns the same time as synctest's clock begins with.
func (h *host) wall() (sec int64, nsec int32) {
	const begin = 946684800 // 2000-01-01
	now := h.now()
	return begin + now/1e9, int32(now % 1e9)
}

func (h *host) sleep(ns int64) { h.time += ns }
