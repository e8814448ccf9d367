package contend

import (
	"errors"
	"io/fs"
	"os"
	"sync/atomic"
)

// Proof is what a holder tells that it is inside, in a place that the lock knows
// nothing of. Both say whether nobody else was there.
type Proof interface {
	Enter() (alone bool)
	Leave() (alone bool)
}

// Counter is a Proof for the contenders of one process.
type Counter struct{ inside atomic.Int32 }

// Enter counts a holder in.
func (c *Counter) Enter() bool { return c.inside.Add(1) == 1 }

// Leave counts it out.
func (c *Counter) Leave() bool { return c.inside.Add(-1) == 0 }

// File is a Proof for contenders of any process: the path of a file that exists
// while somebody is inside. The operating system lets only one of them make it.
type File string

// Enter makes the file.
func (f File) Enter() bool {
	h, err := os.OpenFile(string(f), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	return h.Close() == nil
}

// Leave removes it. That it is gone says that somebody else was inside, too.
func (f File) Leave() bool {
	return !errors.Is(os.Remove(string(f)), fs.ErrNotExist)
}
