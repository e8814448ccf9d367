package load

import "fmt"

// keySize is the length of every key: the numbers of the turn, the caller and the key.
const keySize = len("t0000:0000:00000")

// keys holds the keys of all callers, made before the turn. A caller goes through its keys and
// begins again; by then, keys that the first pass left behind on a slow master are gone. All
// are slices of one string, so that they make no work for the garbage collector.
type keys struct {
	all string
	per int // keys of each caller
}

// Prefix returns how all keys of a turn begin.
func Prefix(turn int) string { return fmt.Sprintf("t%04d:", turn%10000) }

func newKeys(turn, callers int) keys {
	k := keys{per: max(16, 8192/callers)}
	prefix := Prefix(turn)
	b := make([]byte, 0, callers*k.per*keySize)
	for c := range callers {
		for i := range k.per {
			b = fmt.Appendf(b, "%s%04d:%05d", prefix, c, i)
		}
	}
	k.all = string(b)
	return k
}

// key returns the nth key that a caller uses.
func (k keys) key(caller, n int) string {
	at := (caller*k.per + n%k.per) * keySize
	return k.all[at : at+keySize]
}
