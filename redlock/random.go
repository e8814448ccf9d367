package redlock

import (
	"encoding/binary"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"
)

// random makes the random parts of the values that identify a key's owner, which must not be guessed, and the pauses of
// waiters, which must not coincide. It reads no byte before it is needed. A copy of the process, as
// of a cloned machine, would have the same bytes in store, and its locks the same values, so that
// each could release the other's. The bytes of crypto/rand come from the kernel, which notices a
// clone and seeds itself anew.
//
// Package uuid's pool is off for the same reason. It is also one switch for the whole process,
// which is the program's to set.
type random struct {
	mu     sync.Mutex
	source io.Reader
	bytes  [16]byte // the last ones read; kept here to save an allocation
}

func newRandom(source io.Reader) *random { return &random{source: source} }

// uuid returns a new UUIDv4, or the source's error.
func (r *random) uuid() (uuid.UUID, error) {
	r.mu.Lock()
	_, err := io.ReadFull(r.source, r.bytes[:])
	id := uuid.UUID(r.bytes)
	r.mu.Unlock()
	id[6] = id[6]&0x0f | 0x40 // version 4
	id[8] = id[8]&0x3f | 0x80 // variant of RFC 9562
	return id, err
}

// below returns a random time from 0 to d, without d; 0 if the source fails.
func (r *random) below(d time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.bytes[:8]
	if _, err := io.ReadFull(r.source, b); err != nil || d <= 0 {
		return 0
	}
	return time.Duration(binary.LittleEndian.Uint64(b) % uint64(d))
}
