package main

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// columns is the width of the narrowest terminal in use. Nothing that is
	// printed is wider, so that no terminal breaks a row of a table.
	columns = 80
	indent  = "   "
	gap     = "  "

	maxAddr = 30
)

// table lists the votes: who, what, how fast, and what it said. Cells are padded
// before they are painted, as an escape code has no width.
func (p painter) table(votes []vote) string {
	const voteHead, latencyHead = "vote", "latency"
	addr, word, latency := len("node"), len(voteHead), len(latencyHead)
	for _, v := range votes {
		addr = max(addr, min(width(v.Addr), maxAddr))
		word = max(word, width(v.Vote))
		latency = max(latency, width(millis(v.Latency)))
	}
	left := indent + indent
	said := columns - len(left) - addr - word - latency - 3*len(gap)

	var b strings.Builder
	head := left + pad("node", addr) + gap + pad(voteHead, word) + gap + padLeft(latencyHead, latency) + gap + "said"
	b.WriteString(p.paint(dim, head) + "\n")
	for _, v := range votes {
		fmt.Fprint(&b, left, pad(cut(v.Addr, addr), addr), gap, p.paint(voteColour(v.Vote), pad(v.Vote, word)), gap,
			padLeft(millis(v.Latency), latency), gap, hang(v.brief, columns-said, said), "\n")
	}
	return b.String()
}

func voteColour(vote string) colour {
	switch vote {
	case "granted":
		return green
	case "failed":
		return red
	}
	return yellow
}

func width(s string) int { return utf8.RuneCountInString(s) }

func pad(s string, to int) string     { return s + strings.Repeat(" ", max(0, to-width(s))) }
func padLeft(s string, to int) string { return strings.Repeat(" ", max(0, to-width(s))) + s }

// cut leaves out what does not fit, and shows that it did.
func cut(s string, to int) string {
	const mark = "..."
	if width(s) <= to {
		return s
	}
	return string([]rune(s)[:max(0, to-len(mark))]) + mark[:max(0, min(to, len(mark)))]
}

// hang breaks a cell that is too wide into lines of its column, which begins at.
func hang(s string, at, to int) string {
	var lines []string
	for _, word := range strings.Fields(s) {
		word = cut(word, to)
		if last := len(lines) - 1; last >= 0 && width(lines[last])+1+width(word) <= to {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return strings.Join(lines, "\n"+strings.Repeat(" ", at))
}

// wrap breaks text at spaces so that with its indentation it fits. A word that is
// too long stays whole: it can then be copied.
func wrap(s, indent string) string {
	var b strings.Builder
	for paragraph := range strings.SplitSeq(s, "\n") {
		line := indent
		for _, word := range strings.Fields(paragraph) {
			switch {
			case line == indent:
				line += word
			case width(line)+1+width(word) <= columns:
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

// millis is a duration in one unit, so that a column of them can be compared.
func millis(d micros) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

// span is a duration in a sentence.
func span(d micros) string {
	switch {
	case time.Duration(d) < 10*time.Millisecond:
		return millis(d)
	case time.Duration(d) < time.Second:
		return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
	}
	seconds := fmt.Sprintf("%.3f", float64(d)/float64(time.Second))
	return strings.TrimRight(strings.TrimRight(seconds, "0"), ".") + " s"
}
