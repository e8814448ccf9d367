package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// painter colours text, if it is true.
type painter bool

type colour string

const (
	bold   colour = "1"
	dim    colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
)

func (p painter) paint(c colour, s string) string {
	if !p || c == "" || s == "" {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

// coloured is the painter for w.
func coloured(w io.Writer) painter { return painter(colourful(w, os.Getenv)) }

// colourful reports that w is a terminal whose user has nothing against colours
// (https://no-color.org).
func colourful(w io.Writer, getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb" && terminal(w)
}

// terminal reports whether w is one.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// columnsOf is the width of the terminal w as it is now, or columns if it has none.
func columnsOf(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return columns
}
