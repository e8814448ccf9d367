package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Painter colours text if it is true.
type Painter bool

type Colour string

const (
	Bold   Colour = "1"
	Dim    Colour = "2"
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
)

func (p Painter) Paint(c Colour, s string) string {
	if !p || c == "" || s == "" {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

// For returns the painter for w.
func For(w io.Writer) Painter { return Painter(colourful(w, os.Getenv)) }

// colourful reports whether w is a terminal whose user has nothing against colours
// (https://no-color.org).
func colourful(w io.Writer, getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb" && Is(w)
}

// Is reports whether w is a terminal.
func Is(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// ColumnsOf returns the current width of the terminal w, or Columns if w is not a terminal.
func ColumnsOf(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return Columns
}
