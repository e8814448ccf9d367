package handle

import (
	"encoding/base64"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var sample = Handle{
	Prefix: "app:", Key: "orders", Value: "5f0c7a1e-0000-4000-8000-0123456789ab 1700000000 host/17",
	Token: 1_700_000_000_000_001, TTL: 10 * time.Minute, Left: 9*time.Minute + 7*time.Millisecond,
}

const longest = math.MaxInt64 / time.Millisecond * time.Millisecond

func encode(t *testing.T, h Handle) string {
	t.Helper()
	text, err := h.Encode()
	require.NoError(t, err)
	return text
}

func TestHandleSurvivesTheText(t *testing.T) {
	for _, h := range []Handle{
		sample,
		{Key: "k", Value: "v"},
		{Key: strings.Repeat("k", MaxName-1), Value: "v", Token: math.MaxInt64, TTL: longest, Left: longest},
		{Prefix: "\x00", Key: "a b\n\xff", Value: "{}"},
	} {
		text := encode(t, h)
		assert.LessOrEqual(t, len(text), MaxText)
		assert.Regexp(t, `^redlock1\.[A-Za-z0-9_-]+$`, text, "it can be an argument, a file name, a part of a URL")
		back, err := Decode(text)
		require.NoError(t, err)
		assert.Equal(t, h, back)
	}
}

// The format is a contract between programs of different versions.
func TestHandleTextIsPinned(t *testing.T) {
	assert.Equal(t, "redlock1.BGFwcDoGb3JkZXJzNzVmMGM3YTFlLTAwMDAtNDAwMC04MDAwLTAxMjM0NTY3ODlhYiAxNzAwMDAwMDAwIGhvc3QvMTeBgPnAwcSCA8DPJOf6ILXYRKZnoRFW", encode(t, sample))
}

func TestHandleRoundsTimesToTheSafeSide(t *testing.T) {
	back, err := Decode(encode(t, Handle{Key: "k", Value: "v", TTL: 10*time.Millisecond - 1, Left: 10*time.Millisecond + 1}))
	require.NoError(t, err)
	assert.Equal(t, 9*time.Millisecond, back.TTL, "a ttl as the nodes know it")
	assert.Equal(t, 11*time.Millisecond, back.Left, "no key lives longer")
	back, err = Decode(encode(t, Handle{Key: "k", Value: "v", Left: math.MaxInt64}))
	require.NoError(t, err)
	assert.Equal(t, longest, back.Left)
	back, err = Decode(encode(t, Handle{Key: "k", Value: "v", TTL: -1, Left: -1}))
	require.NoError(t, err)
	assert.Equal(t, Handle{Key: "k", Value: "v"}, back)
}

func TestHandleThatIsDamagedIsNotDecoded(t *testing.T) {
	text := encode(t, sample)
	for i := len(version); i < len(text); i++ {
		for _, c := range "AZaz09-_!" {
			if damaged := text[:i] + string(c) + text[i+1:]; damaged != text {
				_, err := Decode(damaged)
				require.ErrorIs(t, err, ErrDamaged, "%d %c", i, c)
			}
		}
		_, err := Decode(text[:i])
		require.ErrorIs(t, err, ErrDamaged, "cut after %d", i)
	}
	for _, damaged := range []string{text + "A", text + "=", text + "\n", text[:40] + "\r\n" + text[40:], text + text} {
		_, err := Decode(damaged)
		require.ErrorIs(t, err, ErrDamaged)
	}
}

func TestHandleErrorsSayWhatTheTextIs(t *testing.T) {
	text := encode(t, sample)
	for wrong, want := range map[string]error{
		"":                                  ErrEmpty,
		"garbage":                           ErrForeign,
		"redlock":                           ErrForeign,
		"redlock.x":                         ErrForeign,
		"redlockX1.abc":                     ErrForeign,
		"REDLOCK1.abc":                      ErrForeign,
		"12.abc":                            ErrForeign,
		"redlock2." + text[len(version):]:   ErrVersion,
		"redlock10.":                        ErrVersion,
		"redlock1.":                         ErrDamaged,
		"redlock1.AAAA":                     ErrDamaged,
		text + strings.Repeat("A", MaxText): ErrLong,
		strings.Repeat("\xff", 1<<20):       ErrLong,
		forge(nil):                          ErrForeign,
		forge([]byte{0, 1, 'k', 9, 'v'}):    ErrForeign,
		forge([]byte("\x00\x00\x01v\x00\x00\x00")):                                                     ErrForeign, // no key
		forge([]byte("\x00\x01k\x00\x00\x00\x00")):                                                     ErrForeign, // no value
		forge([]byte("\x00\x01k\x01v")):                                                                ErrForeign,
		forge([]byte("\x00\x01k\x01v\x00\x00\x00more")):                                                ErrForeign,
		forge([]byte("\x00\x01k\x01v\x80\x00\x00\x00")):                                                ErrForeign, // a long zero
		forge(append([]byte("\x00\x01k\x01v"), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00"...)): ErrForeign,
	} {
		h, err := Decode(wrong)
		assert.ErrorIs(t, err, want)
		assert.Zero(t, h)
		assert.NotContains(t, err.Error(), "abc")
	}
}

// forge returns a text with a right checksum.
func forge(fields []byte) string {
	return version + base64.RawURLEncoding.EncodeToString(append(fields, sum(append([]byte(version), fields...))...))
}

func TestHandleOfALongKeyIsAnError(t *testing.T) {
	_, err := Handle{Key: strings.Repeat("k", MaxName), Value: "v"}.Encode()
	assert.ErrorIs(t, err, ErrLong)
}

func FuzzHandle(f *testing.F) {
	text, err := sample.Encode()
	require.NoError(f, err)
	for _, seed := range []string{text, "", "redlock1.", "redlock2.AAAA", text[:40], forge([]byte("\x00\x01k\x01v\x00\x00\x00")), forge([]byte("\x00\x01k\xff\xff\xff\xff\x0f"))} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := Decode(text)
		if err == nil {
			again, err := h.Encode()
			require.NoError(t, err)
			require.Equal(t, text, again, "a handle has one text")
		} else {
			require.Zero(t, h)
			require.Less(t, len(err.Error()), 100, "the error does not quote the text")
		}

		// The text as fields with a right checksum: the fields are decoded too.
		if h, err := Decode(forge([]byte(text))); err == nil {
			require.GreaterOrEqual(t, h.Token, int64(0))
			require.GreaterOrEqual(t, h.TTL, time.Duration(0))
			require.GreaterOrEqual(t, h.Left, time.Duration(0))
		}
	})
}
