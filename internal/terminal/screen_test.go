package terminal

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// display is a screen whose output can be read back, in a size that may change.
type display struct {
	strings.Builder
	columns, rows int
}

func (d *display) screen() *Screen {
	return &Screen{w: d, size: func() (columns, rows int) { return d.columns, d.rows }}
}

// drawn returns what was written since the last call.
func (d *display) drawn() string {
	defer d.Reset()
	return d.String()
}

func TestScreenDrawsInPlace(t *testing.T) {
	d := &display{columns: 10, rows: 4}
	s := d.screen()
	require.NoError(t, s.Draw("a\nb\n"))
	assert.Equal(t, "\n\n\n"+home+"a"+eraseLine+"\nb"+eraseLine+"\n"+eraseRest, d.drawn(), "what was there scrolls up first")
	require.NoError(t, s.Draw("c\n"))
	assert.Equal(t, home+"c"+eraseLine+"\n"+eraseRest, d.drawn())
	require.NoError(t, s.Close())
	assert.Equal(t, "\n", d.drawn(), "the picture stays")
}

func TestScreenNeedsATerminalThatMovesItsCursor(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	defer terminal.Close()
	t.Setenv("TERM", "xterm")
	assert.NotNil(t, ScreenOf(terminal))
	assert.Nil(t, ScreenOf(&strings.Builder{}))
	t.Setenv("TERM", "dumb")
	assert.Nil(t, ScreenOf(terminal))
}

func TestScreenWithoutAPictureIsLeftAsItIs(t *testing.T) {
	d := &display{columns: 10, rows: 4}
	require.NoError(t, d.screen().Close())
	assert.Empty(t, d.drawn())
}

// A terminal that is at the end of a full row erases that row's last character.
func TestScreenKeepsTheLastColumn(t *testing.T) {
	d := &display{columns: 3, rows: 9}
	s := d.screen()
	require.NoError(t, s.Draw(""))
	d.Reset()
	require.NoError(t, s.Draw("abc\n\x1b[1mdefgh\x1b[0m"))
	assert.Equal(t, home+"abc\n\x1b[1mdef\ngh\x1b[0m"+eraseLine+"\n"+eraseRest, d.drawn())
	d.columns = 9
	require.NoError(t, s.Redraw())
	assert.Equal(t, home+"abc"+eraseLine+"\n\x1b[1mdefgh\x1b[0m"+eraseLine+"\n"+eraseRest, d.drawn())
}

// The top says what a picture is about, and the bottom what follows from it.
func TestScreenLeavesOutTheMiddle(t *testing.T) {
	const picture = "title/2/3/4/5/6/7/8/verdict"
	for most, want := range map[int]string{
		9: picture,
		8: "title/2/3/... 2 lines that do not fit .../6/7/8/verdict",
		4: "title/... 6 lines that do not fit .../8/verdict",
		2: "... 8 lines that do not fit .../verdict",
		0: "... 8 lines that do not fit .../verdict",
	} {
		var rows []string
		for _, row := range fit(strings.ReplaceAll(picture, "/", "\n")+"\n", 80, most) {
			rows = append(rows, strings.TrimPrefix(row.text, plainText))
		}
		assert.Equal(t, want, strings.Join(rows, "/"), "%d rows", most)
	}
	assert.Equal(t, "... 2 ...", fit("a\nb\nc", 9, 2)[0].text[len(plainText):], "no wider than the screen")
}
