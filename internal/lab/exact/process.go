package exact

import (
	"bytes"
	"context"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"
)

// process is one run of the guest.
type process struct {
	guest api.Module
	host  host
	lines lines
	said  bytes.Buffer // on standard error
	input uint32       // the address of its buffer
}

// inputSize is the size of the guest's buffer.
const inputSize = 64 << 10

// start begins the run of a query. each gets the lines that the guest writes, without line breaks, and
// must not keep them.
func (l *Lab) start(query string, each func(line []byte) error) (*process, error) {
	p := &process{lines: lines{each: each}}
	ctx := context.Background()
	var err error
	p.guest, err = l.runtime.InstantiateModule(ctx, l.guest, wazero.NewModuleConfig().
		WithName(""). // without a name there may be several
		WithStartFunctions("_initialize").
		WithStdout(&p.lines).WithStderr(&p.said).
		WithRandSource(&p.host).
		WithWalltime(p.host.wall, sys.ClockResolution(step)).
		WithNanotime(p.host.now, sys.ClockResolution(step)).
		WithNanosleep(p.host.sleep))
	if err != nil {
		return nil, p.crashed(err)
	}
	at, err := p.guest.ExportedFunction("buffer").Call(ctx)
	if err != nil {
		p.stop()
		return nil, p.crashed(err)
	}
	p.input = uint32(at[0])
	refused, err := p.call("begin", query)
	if err == nil && refused != 0 {
		err = fmt.Errorf("no such run: %s", query)
	}
	if err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// call writes the text into the buffer, and calls a function of the guest with its length.
func (p *process) call(function, text string) (uint32, error) {
	if len(text) > inputSize || !p.guest.Memory().WriteString(p.input, text) {
		return 0, fmt.Errorf("the text has %d bytes, which is too long", len(text))
	}
	result, err := p.guest.ExportedFunction(function).Call(context.Background(), uint64(len(text)))
	if err != nil {
		return 0, p.crashed(err)
	}
	return uint32(result[0]), p.lines.err
}

func (p *process) stop() { _ = p.guest.Close(context.Background()) }

func (p *process) crashed(err error) error {
	return fmt.Errorf("the simulation crashed: %w: %s", err, bytes.TrimSpace(p.said.Bytes()))
}

// lines is a writer that hands out whole lines.
type lines struct {
	each func(line []byte) error
	rest []byte
	err  error // the first error of each
}

func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		if err := l.each(line); l.err == nil {
			l.err = err
		}
		l.rest = append(l.rest[:0], rest...)
	}
}
