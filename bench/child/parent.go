// Package child runs a part of a measurement in another process: this program again, with a
// flag for the part and a plan. Parent and child exchange JSON over pipes. The child gives up
// when its parent has gone.
package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Process is a child, as seen by its parent.
type Process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser // closing it ends the child
	from *json.Decoder
}

// Start starts this program with flag and the plan. The caller must call End.
func Start(ctx context.Context, flag string, plan any) (*Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(plan)
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.CommandContext(ctx, program, flag, string(text))}
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.from = json.NewDecoder(out)
	return p, p.cmd.Start()
}

// message is what a child sends: a value, or the error that made it give up.
type message struct {
	Error string          `json:",omitempty"`
	Said  json.RawMessage `json:",omitempty"`
}

// Hear waits for the next value from the child. If said is nil, it drops the value.
func (p *Process) Hear(said any) error {
	var m message
	if err := p.from.Decode(&m); err != nil {
		return fmt.Errorf("a child process has ended: %w", err)
	}
	if m.Error != "" {
		return errors.New(m.Error)
	}
	if said == nil {
		return nil
	}
	return json.Unmarshal(m.Said, said)
}

// Tell sends a value to the child.
func (p *Process) Tell(what any) error { return json.NewEncoder(p.in).Encode(what) }

// End waits for the end of the child, which has nothing more to do.
func (p *Process) End() error {
	_ = p.in.Close()
	return p.cmd.Wait()
}
