package redlock

import (
	"bufio"
	"crypto/rand"
	"sync"

	"github.com/google/uuid"
)

// values makes the random values that say who owns a key. It reads the system's
// randomness through a buffer of its own; package uuid's pool would do the same,
// but is one switch for the whole process, which is the program's to set.
type values struct {
	mu     sync.Mutex
	random *bufio.Reader
}

func newValues() *values {
	return &values{random: bufio.NewReaderSize(rand.Reader, 64*16)} // 64 values a read
}

// next is a fresh UUIDv4.
func (v *values) next() (string, error) {
	v.mu.Lock()
	id, err := uuid.NewRandomFromReader(v.random)
	v.mu.Unlock()
	return id.String(), err
}
