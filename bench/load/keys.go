package load

import "fmt"

// keySize is the length of every key: the turn's number, the caller's, and the
// key's own.
const keySize = len("t0000:0000:00000")

// keys are each caller's own, made before the turn: a caller goes through its
// share from end to end and begins again, by when what was left behind on a slow
// master at the first pass is gone. They are slices of one string, so that they
// are no work for the garbage collector.
type keys struct {
	all string
	per int // of each caller
}

func newKeys(turn, callers int) keys {
	k := keys{per: max(16, 8192/callers)}
	b := make([]byte, 0, callers*k.per*keySize)
	for c := range callers {
		for i := range k.per {
			b = fmt.Appendf(b, "t%04d:%04d:%05d", turn%10000, c, i)
		}
	}
	k.all = string(b)
	return k
}

// key is the nth that a caller uses.
func (k keys) key(caller, n int) string {
	at := (caller*k.per + n%k.per) * keySize
	return k.all[at : at+keySize]
}
