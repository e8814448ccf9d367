// Package child runs a part of a measurement in a process of its own: this program
// again, with a flag that says which part and a plan. The two talk JSON over pipes,
// and the child gives up when its parent has gone.
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

// Process is a child, as its parent sees it.
type Process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser // its end is the end of the child
	from *json.Decoder
}

// Start starts this program with flag and the plan. The caller calls End.
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

// message is what a child says: something, or why it gives up.
type message struct {
	Error string          `json:",omitempty"`
	Said  json.RawMessage `json:",omitempty"`
}

// Hear waits for what the child says next. nil: whatever it is.
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

// Tell tells the child something.
func (p *Process) Tell(what any) error { return json.NewEncoder(p.in).Encode(what) }

// End waits for the end of the child, which has nothing to do any more.
func (p *Process) End() error {
	_ = p.in.Close()
	return p.cmd.Wait()
}
