// Package terminal formats text for people: tables, widths and colours. It also reports whether a
// writer is a terminal.
package terminal

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// Columns is the width of the narrowest terminal in use. Nothing printed is wider, so that no
	// terminal breaks a row of a table.
	Columns = 80
	Indent  = "   "
	Gap     = "  "
)

// Width returns the number of columns that s takes.
func Width(s string) int { return utf8.RuneCountInString(s) }

func pad(s string, to int) string     { return s + strings.Repeat(" ", max(0, to-Width(s))) }
func padLeft(s string, to int) string { return strings.Repeat(" ", max(0, to-Width(s))) + s }

// Cut shortens s to the width, and marks where it did.
func Cut(s string, to int) string {
	const mark = "..."
	if Width(s) <= to {
		return s
	}
	return string([]rune(s)[:max(0, to-len(mark))]) + mark[:max(0, min(to, len(mark)))]
}

// Hang breaks a cell that is too wide into lines of its column. at is where the column begins, and
// to is its width.
func Hang(s string, at, to int) string {
	var lines []string
	for _, word := range strings.Fields(s) {
		word = Cut(word, to)
		if last := len(lines) - 1; last >= 0 && Width(lines[last])+1+Width(word) <= to {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return strings.Join(lines, "\n"+strings.Repeat(" ", at))
}

// Wrap breaks text at spaces so that it fits with its indentation. A word that is too long stays
// whole, so that it can be copied.
func Wrap(s, indent string) string {
	var b strings.Builder
	for paragraph := range strings.SplitSeq(s, "\n") {
		line := indent
		for _, word := range strings.Fields(paragraph) {
			switch {
			case line == indent:
				line += word
			case Width(line)+1+Width(word) <= Columns:
				line += " " + word
			default:
				b.WriteString(line + "\n")
				line = indent + word
			}
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

func Capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// Brief formats a duration in its two largest units, or in days.
func Brief(d time.Duration) string {
	d = d.Round(time.Second)
	days, hours, minutes, seconds := d/(24*time.Hour), d/time.Hour%24, d/time.Minute%60, d/time.Second%60
	switch {
	case days >= 10:
		return fmt.Sprintf("%dd", days)
	case days > 0:
		return fmt.Sprintf("%dd%dh", days, hours)
	case hours > 0:
		return fmt.Sprintf("%dh%dm", hours, minutes)
	case minutes > 0:
		return fmt.Sprintf("%dm%ds", minutes, seconds)
	}
	return fmt.Sprintf("%ds", seconds)
}
