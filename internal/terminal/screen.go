package terminal

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/term"
)

// Screen is a terminal on which each picture takes the place of the one before.
type Screen struct {
	w       io.Writer
	size    func() (columns, rows int)
	picture string // the last one
	drawn   bool
}

// ScreenOf returns the screen of w. It returns nil if w is not a terminal, or one that cannot move
// its cursor.
func ScreenOf(w io.Writer) *Screen {
	f, ok := w.(*os.File)
	if !ok || !Is(w) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return &Screen{w: w, size: func() (columns, rows int) {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 && rows > 0 {
			return columns, rows
		}
		return Columns, 24
	}}
}

const (
	home      = "\x1b[H"
	eraseLine = "\x1b[K" // from the cursor to the end of the line
	eraseRest = "\x1b[J" // from the cursor to the end of the screen
	plainText = "\x1b[m"
)

// Draw shows a picture. What the first one replaces scrolls up, so it is not lost. A line that is
// too wide goes on in the next row. If the picture is too high, its middle is left out: its ends
// say what it is about and what follows from it. The cursor stays below the picture.
//
// Draw writes once, and erases only what the picture does not overwrite, so it does not flicker.
func (s *Screen) Draw(picture string) error {
	columns, rows := s.size()
	var b strings.Builder
	if !s.drawn {
		b.WriteString(strings.Repeat("\n", rows-1))
	}
	s.picture, s.drawn = picture, true
	b.WriteString(home)
	for _, line := range fit(picture, columns, rows-1) {
		b.WriteString(line.text)
		if line.width < columns { // otherwise this would erase the last character
			b.WriteString(eraseLine)
		}
		b.WriteString("\n")
	}
	b.WriteString(eraseRest)
	_, err := io.WriteString(s.w, b.String())
	return err
}

// Redraw shows the last picture again, for a terminal that has another size now.
func (s *Screen) Redraw() error { return s.Draw(s.picture) }

// Close leaves the last picture on the screen, and the cursor on an empty line below it.
func (s *Screen) Close() error {
	if !s.drawn {
		return nil
	}
	_, err := io.WriteString(s.w, "\n") // the terminal may have shown a ^C
	return err
}

// row is a row of the screen.
type row struct {
	text  string
	width int
}

// fit returns the rows of a text. If there are more than most, a note takes the place of those in
// the middle.
func fit(text string, columns, most int) (rows []row) {
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		rows = append(rows, broken(line, columns)...)
	}
	if len(rows) <= most {
		return rows
	}
	most = max(most-1, 1)
	above, below := most/2, most-most/2
	note := Cut(fmt.Sprintf("... %d lines that do not fit ...", len(rows)-most), columns)
	kept := append(rows[:above:above], row{plainText + note, Width(note)})
	return append(kept, rows[len(rows)-below:]...)
}

// glyphs matches a change of colour, or a character.
var glyphs = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[0-9;]*m|.`) })

// broken breaks a line into rows, as a terminal does.
func broken(line string, columns int) (rows []row) {
	var b strings.Builder
	width := 0
	for _, glyph := range glyphs().FindAllString(line, -1) {
		if glyph[0] != '\x1b' {
			if width == columns {
				rows = append(rows, row{b.String(), width})
				b.Reset()
				width = 0
			}
			width++
		}
		b.WriteString(glyph)
	}
	return append(rows, row{b.String(), width})
}
