package redlock

import (
	"bufio"
	"encoding/binary"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"
)

// random makes what must not be guessed and what must not coincide: the values
// that say who owns a key, and the pauses of those who wait. It reads its source
// through a buffer of its own; package uuid's pool would do the same, but is one
// switch for the whole process, which is the program's to set.
type random struct {
	mu     sync.Mutex
	source *bufio.Reader
}

func newRandom(source io.Reader) *random {
	return &random{source: bufio.NewReaderSize(source, 64*16)} // 64 values a read
}

// value is a fresh UUIDv4.
func (r *random) value() (string, error) {
	r.mu.Lock()
	id, err := uuid.NewRandomFromReader(r.source)
	r.mu.Unlock()
	return id.String(), err
}

// below is a random time from 0 to d, without d; 0 if there is no randomness to be
// had.
func (r *random) below(d time.Duration) time.Duration {
	var b [8]byte
	r.mu.Lock()
	_, err := io.ReadFull(r.source, b[:])
	r.mu.Unlock()
	if err != nil || d <= 0 {
		return 0
	}
	return time.Duration(binary.LittleEndian.Uint64(b[:]) % uint64(d))
}
