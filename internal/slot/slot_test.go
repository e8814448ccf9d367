package slot

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSlotsAreThoseOfTheSpecification(t *testing.T) {
	require.Equal(t, uint16(0x31c3), crc16("123456789"), "the check value of CRC-16/XMODEM")
	// The expected slots are those of CLUSTER KEYSLOT in Redis 7.0.
	for key, want := range map[string]int{
		"foo": 12182, "{foo}bar": 12182, "a{foo}": 12182, "somekey": 11058,
		"a}b": 7866, "{}job": 464, "{bar": 4015,
	} {
		require.Equal(t, want, Of(key), key)
	}
	require.Equal(t, Of("bar"), Of("foo{bar}{zap}"))
	require.NotEqual(t, Of("bar"), Of("foo{}{bar}"), "an empty tag is none")
	require.Equal(t, Of("{bar"), Of("foo{{bar}}zap"))
}

func TestSiblings(t *testing.T) {
	for key, want := range map[string]string{
		"job":    "p{job}",
		"{a}job": "p:{a}job",
		"a{job":  "p{a{job}",
		"{}job":  "p{" + tags()[Of("{}job")] + "}{}job",
		"a}b":    "p{" + tags()[Of("a}b")] + "}a}b",
	} {
		require.Equal(t, want, Sibling("p", key))
	}
}

func TestEverySlotHasAShortTag(t *testing.T) {
	for s, tag := range tags() {
		require.Equal(t, s, Of(tag))
		require.LessOrEqual(t, len(tag), 4)
	}
}

// A sibling is in the slot of its key, and no two keys have the same sibling.
func FuzzSibling(f *testing.F) {
	f.Add("job", "{job}", uint64(0x123456789), uint64(1))
	f.Add("a}b", "{a}b", uint64(2), uint64(11))
	f.Add("{}", ":{}", uint64(3), uint64(3))
	f.Fuzz(func(t *testing.T, a, b string, m, n uint64) {
		for _, keys := range [][2]string{{"k" + a, "k" + b}, {a + "k", b + "k"}, {braces(m), braces(n)}} {
			a, b := keys[0], keys[1]
			require.Equal(t, Of(a), Of(Sibling("p", a)), a)
			require.Equal(t, a == b, Sibling("p", a) == Sibling("p", b), "%q, %q", a, b)
		}
	})
}

// braces returns keys that random bytes hardly ever form.
func braces(n uint64) string {
	s := strings.Builder{}
	for n++; n > 0; n /= 5 {
		s.WriteByte("a{}:p"[n%5])
	}
	return s.String()
}
