package label

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
)

var random = uuid.MustParse("f1b2c3d4-0123-4abc-8def-0123456789ab")

func TestValue(t *testing.T) {
	at := time.Unix(1_790_000_000, 999_999_999)
	value := Value(random, at, "web-3 pid 4711")
	assert.Equal(t, "f1b2c3d4-0123-4abc-8def-0123456789ab 1790000000 web-3 pid 4711", value)
	l, ok := Read(value)
	assert.True(t, ok)
	assert.Equal(t, Label{"web-3 pid 4711", time.Unix(1_790_000_000, 0)}, l)
	assert.Equal(t, 1.0, testing.AllocsPerRun(100, func() { Value(random, at, "web-3 pid 4711") }), "allocations, that of the value")

	for name, at := range map[string]time.Time{"zero": {}, "far": time.Unix(1<<60, 0)} {
		l, ok := Read(Value(random, at, "x"))
		assert.True(t, ok, name)
		assert.Equal(t, "x", l.Owner, name)
	}
}

func TestReadOtherValues(t *testing.T) {
	l, ok := Read(random.String())
	assert.True(t, ok, "a UUID alone, as other clients write")
	assert.Equal(t, Label{}, l)
	for _, value := range []string{
		"", "x", random.String()[:35], random.String() + "x", random.String() + " ", random.String() + " 5", random.String() + " 5x a",
		random.String() + "  a", random.String() + " -5 a", random.String() + " +5 a", random.String() + " 05 a", random.String() + " 253402300800 a",
		random.String() + " 5 a\x1b[2J", random.String() + " 5 \xff", random.String() + " 5 " + strings.Repeat("a", MaxLength+1),
		"{f1b2c3d4-0123-4abc-8def-0123456789ab", "urn:uuid:f1b2c3d4-0123-4abc-8def-01234",
	} {
		_, ok := Read(value)
		assert.False(t, ok, "%q", value)
	}
}

func TestCheck(t *testing.T) {
	for _, owner := range []string{"", "a", "worker 3 (Zürich) – 東京", strings.Repeat("é", MaxLength/2)} {
		assert.NoError(t, Check(owner), "%q", owner)
	}
	for owner, why := range map[string]string{
		"a\nb":                             "has the character U+000A, which cannot be printed",
		"\x1b[2J":                          "has the character U+001B, which cannot be printed",
		"a\u202eb":                         "has the character U+202E, which cannot be printed",
		"a\x00":                            "has the character U+0000, which cannot be printed",
		"a\xff":                            "is not valid UTF-8",
		strings.Repeat("é", MaxLength/2+1): "has 130 bytes, more than 128",
	} {
		assert.EqualError(t, Check(owner), why)
	}
}

func TestDefault(t *testing.T) {
	assert.NoError(t, Check(Default()))
	assert.Regexp(t, `^.+ pid [1-9][0-9]*$`, Default())
}

// A value comes from a server, where anybody may have written it.
func FuzzRead(f *testing.F) {
	f.Add(Value(random, time.Unix(5, 0), "a b"))
	f.Add(random.String())
	f.Add(random.String() + " 5 \x1b")
	f.Fuzz(func(t *testing.T, value string) {
		l, ok := Read(value)
		if !ok {
			assert.Equal(t, Label{}, l)
			return
		}
		assert.NoError(t, Check(l.Owner))
		if !l.Since.IsZero() {
			assert.Equal(t, value[36:], Value(random, l.Since, l.Owner)[36:], "nothing of a label is lost")
		}
	})
}
