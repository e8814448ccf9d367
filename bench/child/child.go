package child

import (
	"context"
	"encoding/json"
	"errors"
	"io"
)

// Pipe is the child's end of the pipes to its parent.
type Pipe struct {
	out   *json.Encoder
	heard chan json.RawMessage
}

// Run carries out a plan in the child. It calls do with the plan, the Pipe, and a context that
// ends when the parent has gone. It sends do's error to the parent.
func Run[Plan any](plan string, in io.Reader, out io.Writer, do func(context.Context, Plan, *Pipe) error) error {
	p := &Pipe{out: json.NewEncoder(out), heard: make(chan json.RawMessage)}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		from := json.NewDecoder(in)
		for {
			var m json.RawMessage
			if err := from.Decode(&m); err != nil {
				cancel(errors.New("the parent has gone"))
				return
			}
			select {
			case p.heard <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	var of Plan
	err := json.Unmarshal([]byte(plan), &of)
	if err == nil {
		err = do(ctx, of, p)
	}
	if err != nil {
		_ = p.out.Encode(message{Error: err.Error()})
	}
	return err
}

// Say sends a value to the parent.
func (p *Pipe) Say(what any) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return p.out.Encode(message{Said: text})
}

// Hear waits for the next value from the parent.
func (p *Pipe) Hear(ctx context.Context, value any) error {
	select {
	case m := <-p.heard:
		return json.Unmarshal(m, value)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
