package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/leash"
	"github.com/quorumlock/redlock/internal/plain"
	"github.com/quorumlock/redlock/internal/terminal"
	"github.com/quorumlock/redlock/redlock"
)

// output has the flags that say what to print.
type output struct {
	verbose, quiet bool
	format         string // text or json
}

func (o *output) register(set *pflag.FlagSet) {
	set.BoolVarP(&o.verbose, "verbose", "v", false, "tell on stderr what happens")
	set.BoolVarP(&o.quiet, "quiet", "q", false, "tell nothing on stderr but errors")
	set.StringVar(&o.format, "log-format", "text", "text, or json: each line that redlock writes to\nstderr is one JSON object")
}

// printer writes run's messages to stderr. No caller waits for stderr, because a pipe that nobody
// reads must not delay the killing of a command. Messages that do not fit into the buffer are
// dropped.
type printer struct {
	output
	w    io.Writer
	key  string       // of the lock
	json slog.Handler // writes to w; nil for text
	live bool         // w is a terminal: each note overwrites the note before

	mu   sync.Mutex
	last line // the library's last warning

	begin sync.Once
	lines chan line
	end   chan struct{} // closed when there is nothing more to write
	ended chan struct{}
}

// line is a message. As JSON it is the record, whose message has no prefix. For people it is the
// text, which has the values of the attributes in it.
type line struct {
	slog.Record
	text string
	note bool          // on a terminal, the next note overwrites it
	then chan struct{} // closed when everything before it is written; nil for a message
}

// unread is how long flush and close wait for a stderr that nobody reads.
const unread = time.Second

func newPrinter(w io.Writer, key string, o output) *printer {
	p := &printer{
		output: o, w: w, key: key, live: terminal.Is(w),
		lines: make(chan line, 256), end: make(chan struct{}), ended: make(chan struct{}),
	}
	if o.format == "json" {
		p.json = slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: forPrograms})
	}
	return p
}

// forPrograms gives the attributes of all records the same units: durations are numbers of seconds,
// as their names say, times are in UTC, and errors are their texts.
func forPrograms(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindDuration:
		return slog.Float64(a.Key+"_seconds", a.Value.Duration().Seconds())
	case slog.KindTime:
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	case slog.KindAny:
		if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.StringValue(plain.Line(err))
		}
	}
	return a
}

// message returns a message. text has the values of the attributes in words.
func (p *printer) message(level slog.Level, e event, text string, attrs []slog.Attr) line {
	text = plain.Printable(text)
	l := line{Record: slog.NewRecord(time.Now(), level, text, 0), text: text}
	l.AddAttrs(slog.String("event", string(e)), slog.String("key", p.key))
	l.AddAttrs(attrs...)
	return l
}

// queue queues a line or, if there is no room, drops it.
func (p *printer) queue(l line) {
	p.begin.Do(func() { go p.write() })
	select {
	case p.lines <- l:
	default:
	}
}

func (p *printer) write() {
	defer close(p.ended)
	note := ""
	for {
		select {
		case l := <-p.lines:
			note = p.put(l, note)
		case <-p.end:
			for len(p.lines) > 0 {
				note = p.put(<-p.lines, note)
			}
			if note != "" {
				_, _ = io.WriteString(p.w, erase)
			}
			return
		}
	}
}

// erase moves to the start of a line and empties it.
const erase = "\r\x1b[K"

// put writes a line above the note that is shown, or replaces that note. It returns the note that
// is shown then.
func (p *printer) put(l line, note string) string {
	switch {
	case l.then != nil:
		close(l.then)
	case p.json != nil:
		if l.text != "" {
			_ = p.json.Handle(context.Background(), l.Record)
		}
	case l.note && p.live:
		note = ""
		if l.text != "" {
			note = terminal.Cut("redlock: "+l.text, terminal.ColumnsOf(p.w)-1) // a second line could not be erased
		}
		_, _ = io.WriteString(p.w, erase+note)
	case l.text == "":
	case note != "":
		_, _ = io.WriteString(p.w, erase+"redlock: "+l.text+"\n"+note)
	default:
		_, _ = io.WriteString(p.w, "redlock: "+l.text+"\n")
	}
	return note
}

// flush returns when all earlier messages are written, or when unread has passed.
func (p *printer) flush() {
	then := make(chan struct{})
	select {
	case p.lines <- line{then: then}:
		p.begin.Do(func() { go p.write() })
		within(unread, then)
	default:
	}
}

// close is the last flush.
func (p *printer) close() {
	p.begin.Do(func() { close(p.ended) })
	close(p.end)
	within(unread, p.ended)
}

func within(d time.Duration, done <-chan struct{}) {
	select {
	case <-done:
	case <-time.After(d):
	}
}

// fail writes the text of an error, and returns an error with its exit status and no text.
func (p *printer) fail(err error) error {
	if err == nil {
		return nil
	}
	status := cli.Status(err)
	if text := plain.Line(err); text != "" {
		attrs := []slog.Attr{slog.Int("status", status), slog.String("error", text)}
		if lost := (*lostError)(nil); errors.As(err, &lost) {
			attrs = append(attrs, slog.Time("until", lost.until))
		}
		p.queue(p.message(slog.LevelError, eventFailed, text, attrs))
	}
	return &cli.ExitError{Code: status}
}

// warn writes a message unless --quiet is set. tell writes one only with --verbose.
func (p *printer) warn(e event, text string, attrs ...slog.Attr) {
	if !p.quiet {
		p.queue(p.message(slog.LevelWarn, e, text, attrs))
	}
}

func (p *printer) tell(e event, text string, attrs ...slog.Attr) {
	if p.verbose {
		p.queue(p.message(slog.LevelInfo, e, text, attrs))
	}
}

// note writes a message that the next note replaces on a terminal.
func (p *printer) note(e event, text string, attrs ...slog.Attr) {
	l := p.message(slog.LevelInfo, e, text, attrs)
	l.note = true
	p.queue(l)
}

// eraseNote erases the note that is shown.
func (p *printer) eraseNote() { p.queue(line{note: true}) }

// exposed warns that others may read the list of masters.
func (p *printer) exposed(text string) { p.warn(eventNodesFileExposed, "warning: "+text) }

func (p *printer) acquired(lock *redlock.Lock, took time.Duration) {
	attrs := []slog.Attr{slog.String("holder", lock.Holder()), slog.Duration("took", took), slog.Time("until", lock.Until())}
	token := ""
	if lock.FencingToken() != 0 {
		token = fmt.Sprintf(", fencing token %d", lock.FencingToken())
		attrs = append(attrs, slog.Int64("fencing_token", lock.FencingToken()))
	}
	p.tell(eventAcquired, fmt.Sprintf("acquired %s as %s after %v, valid until %s unless renewed%s",
		lock.Key(), lock.Holder(), took.Round(time.Millisecond), Stamp(lock.Until()), token), attrs...)
}

// event reports an event of the command.
func (p *printer) event(e leash.Event) {
	by, until, reason := slog.String("signal", signalName(e.Signal)), slog.Time("until", e.Until), slog.Any("error", e.Err)
	switch e.What {
	case leash.Started:
		p.tell(eventCommandStarted, fmt.Sprintf("command started, process %d", e.PID), slog.Int("pid", e.PID))
	case leash.Unguarded:
		p.warn(eventWatchdogFailed, fmt.Sprintf("if redlock is killed, what the command has started may live on: %v", e.Err), reason)
	case leash.Forwarded:
		p.tell(eventSignalForwarded, fmt.Sprintf("%v passed on to the command", e.Signal), by)
	case leash.Hurried:
		p.tell(eventNicenessSet, fmt.Sprintf("redlock runs with niceness %d from now on, to be in time should the lock be lost; the command does not", leash.Niceness), slog.Int("niceness", leash.Niceness))
	case leash.Halted:
		p.tell(eventCommandStopped, "command stopped by SIGSTOP; the lock is renewed meanwhile", by)
	case leash.Stopped:
		p.tell(eventSuspended, "command and redlock stopped; the lock is not renewed meanwhile", by)
	case leash.Resumed:
		p.tell(eventResumed, "command goes on")
	case leash.Ending:
		p.explainLoss()
		p.warn(eventTerminating, fmt.Sprintf("the lock is about to be lost, its validity ends %s: SIGTERM to the command", exactly(e.Until)), by, until)
	case leash.Killed:
		p.warn(eventKilling, fmt.Sprintf("the lock is lost, its validity ends %s: SIGKILL to the command", exactly(e.Until)), by, until)
	case leash.Forbidden:
		p.warn(eventSignalForbidden, fmt.Sprintf("the command cannot be sent %v, it runs on as another user: %v", e.Signal, e.Err), by, reason)
	case leash.Ended:
		status := slog.Int("status", e.Status)
		if e.Signal != 0 {
			p.tell(eventCommandEnded, fmt.Sprintf("command ended by signal %d, %v", int(e.Signal), e.Signal), status, by)
		} else {
			p.tell(eventCommandEnded, "command ended", status)
		}
	case leash.LeftOver:
		fate := "told to end"
		if e.Signal == syscall.SIGKILL {
			fate = "killed"
		}
		p.warn(eventLeftoversEnded, "the command has left processes behind, they are "+fate, by)
	}
}

// explainLoss writes why the lock is being lost, unless --verbose has shown it already.
func (p *printer) explainLoss() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last.text != "" && !p.verbose && !p.quiet {
		p.queue(p.last)
	}
}
