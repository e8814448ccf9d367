package contend

import (
	"errors"
	"io/fs"
	"os"
	"sync/atomic"
)

// Proof checks, without the lock, that there is only one holder at a time. Enter and Leave
// report whether the holder was alone.
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

// File is a Proof for contenders of any processes: the path of a file that exists while a
// holder is inside. The operating system lets only one of them create it.
type File string

// Enter creates the file.
func (f File) Enter() bool {
	h, err := os.OpenFile(string(f), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	return h.Close() == nil
}

// Leave removes the file. If the file is gone, another holder was inside too.
func (f File) Leave() bool {
	return !errors.Is(os.Remove(string(f)), fs.ErrNotExist)
}
