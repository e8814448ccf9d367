package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/leash"
	"github.com/quorumlock/redlock/internal/plain"
	"github.com/quorumlock/redlock/internal/terminal"
	"github.com/quorumlock/redlock/redlock"
)

// printer writes run's messages to stderr. No caller waits for stderr, because a pipe that nobody
// reads must not delay the killing of a command. Messages that do not fit into the buffer are
// dropped.
type printer struct {
	w              io.Writer
	verbose, quiet bool
	live           bool // w is a terminal: each note overwrites the note before

	mu   sync.Mutex
	last string // the library's last message

	begin sync.Once
	lines chan line
	end   chan struct{} // closed when there is nothing more to write
	ended chan struct{}
}

type line struct {
	text string
	note bool          // on a terminal, the next note overwrites it
	then chan struct{} // closed when everything before it is written; nil for a line of text
}

// unread is how long flush and close wait for a stderr that nobody reads.
const unread = time.Second

func newPrinter(w io.Writer, verbose, quiet bool) *printer {
	return &printer{
		w: w, verbose: verbose, quiet: quiet, live: terminal.Is(w),
		lines: make(chan line, 256), end: make(chan struct{}), ended: make(chan struct{}),
	}
}

// say queues a line or, if there is no room, drops it.
func (p *printer) say(text string, note bool) {
	p.begin.Do(func() { go p.write() })
	select {
	case p.lines <- line{text: plain.Printable(text), note: note}:
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

// fail writes the text of an error that has a status, and returns an error with that status and no
// text.
func (p *printer) fail(err error) error {
	var exit *cli.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if text := plain.Line(err); text != "" {
		p.say(text, false)
	}
	return &cli.ExitError{Code: exit.Code}
}

// warn writes a message unless --quiet is set. tell writes one only with --verbose.
func (p *printer) warn(format string, args ...any) {
	if !p.quiet {
		p.say(fmt.Sprintf(format, args...), false)
	}
}

func (p *printer) tell(format string, args ...any) {
	if p.verbose {
		p.say(fmt.Sprintf(format, args...), false)
	}
}

func (p *printer) acquired(lock *redlock.Lock, took time.Duration) {
	token := ""
	if lock.FencingToken() != 0 {
		token = fmt.Sprintf(", fencing token %d", lock.FencingToken())
	}
	p.tell("acquired %s as %s after %v, valid until %s unless renewed%s",
		lock.Key(), lock.Holder(), took.Round(time.Millisecond), Stamp(lock.Until()), token)
}

// event reports an event of the command.
func (p *printer) event(e leash.Event) {
	switch e.What {
	case leash.Started:
		p.tell("command started, process %d", e.PID)
	case leash.Unguarded:
		p.warn("if redlock is killed, what the command has started may live on: %v", e.Err)
	case leash.Forwarded:
		p.tell("%v passed on to the command", e.Signal)
	case leash.Hurried:
		p.tell("redlock runs with niceness %d from now on, to be in time should the lock be lost; the command does not", leash.Niceness)
	case leash.Halted:
		p.tell("command stopped by SIGSTOP; the lock is renewed meanwhile")
	case leash.Stopped:
		p.tell("command and redlock stopped; the lock is not renewed meanwhile")
	case leash.Resumed:
		p.tell("command goes on")
	case leash.Ending:
		p.explainLoss()
		p.warn("the lock is about to be lost, its validity ends %s: SIGTERM to the command", exactly(e.Until))
	case leash.Killed:
		p.warn("the lock is lost, its validity ends %s: SIGKILL to the command", exactly(e.Until))
	case leash.Forbidden:
		p.warn("the command cannot be sent %v, it runs on as another user: %v", e.Signal, e.Err)
	case leash.Ended:
		if e.Signal != 0 {
			p.tell("command ended by signal %d, %v", int(e.Signal), e.Signal)
		} else {
			p.tell("command ended")
		}
	case leash.LeftOver:
		fate := "told to end"
		if e.Signal == syscall.SIGKILL {
			fate = "killed"
		}
		p.warn("the command has left processes behind, they are %s", fate)
	}
}

// explainLoss writes why the lock is being lost, unless --verbose has shown it already.
func (p *printer) explainLoss() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last != "" && !p.verbose {
		p.warn("%s", p.last)
	}
}

// logger takes the library's messages. They are shown with -v. The last one is also shown when the
// lock is being lost, as it may be the reason.
func (p *printer) logger() *slog.Logger { return slog.New(logged{p}) }

type logged struct{ *printer }

func (logged) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (l logged) Handle(_ context.Context, r slog.Record) error {
	var said []string
	r.Attrs(func(a slog.Attr) bool {
		value := a.Value.Resolve()
		text := strings.TrimPrefix(value.String(), "redlock: ")
		switch {
		case a.Key == "key": // run has only one key
			return true
		case value.Kind() == slog.KindTime:
			text = Stamp(value.Time())
		}
		if a.Key != "error" && a.Key != "cause" {
			text = a.Key + " " + text
		}
		said = append(said, text)
		return true
	})
	text := strings.TrimPrefix(r.Message, "redlock: ") + ": " + strings.Join(said, ", ")
	l.tell("%s", text)
	l.mu.Lock()
	l.last = text
	l.mu.Unlock()
	return nil
}

func (l logged) WithAttrs([]slog.Attr) slog.Handler { return l } // there are none
func (l logged) WithGroup(string) slog.Handler      { return l }
