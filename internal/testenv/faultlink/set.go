package faultlink

import (
	"slices"
	"sync"
)

// Set holds open connections. The zero value is empty.
type Set struct {
	mu    sync.Mutex
	conns []*Conn // oldest first
}

// All returns the connections, oldest first.
func (s *Set) All() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.conns)
}

func (s *Set) add(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = append(s.conns, c)
}

func (s *Set) remove(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.conns, c); i >= 0 {
		s.conns = slices.Delete(s.conns, i, i+1)
	}
}
