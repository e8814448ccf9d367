package run

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// logger takes the library's messages. They are shown with -v. The last warning is also shown when
// the lock is being lost, as it may be the reason.
func (p *printer) logger() *slog.Logger { return slog.New(logged{p}) }

type logged struct{ *printer }

func (logged) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (l logged) Handle(_ context.Context, r slog.Record) error {
	said := line{Record: slog.NewRecord(r.Time, r.Level, strings.TrimPrefix(r.Message, "redlock: "), 0)}
	var attrs []slog.Attr
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "key" { // run has only one key
			attrs = append(attrs, a)
		}
		return true
	})
	said.text = inWords(said.Message, attrs)
	said.AddAttrs(append(attrs, slog.String("key", l.key))...)
	if l.verbose {
		l.queue(said)
	}
	if r.Level >= slog.LevelWarn {
		l.mu.Lock()
		l.last = said
		l.mu.Unlock()
	}
	return nil
}

func (l logged) WithAttrs([]slog.Attr) slog.Handler { return l } // there are none
func (l logged) WithGroup(string) slog.Handler      { return l }

// inWords appends the attributes to a message, for people.
func inWords(message string, attrs []slog.Attr) string {
	var said []string
	explained := slices.ContainsFunc(attrs, func(a slog.Attr) bool { return a.Key == "error" })
	for _, a := range attrs {
		value := a.Value.Resolve()
		text := strings.TrimPrefix(value.String(), "redlock: ")
		switch value.Kind() {
		case slog.KindTime:
			text = Stamp(value.Time())
		case slog.KindDuration:
			text = value.Duration().Round(time.Millisecond).String()
		}
		switch a.Key {
		case "event":
		case "error":
			said = append(said, text)
		case "cause":
			if !explained { // otherwise it is a word for programs
				said = append(said, text)
			}
		default:
			said = append(said, a.Key+" "+text)
		}
	}
	if len(said) == 0 {
		return message
	}
	return message + ": " + strings.Join(said, ", ")
}
