package exact

// step is by how much the clock goes on at each reading, in nanoseconds. The runtime of the guest waits
// for it to go on.
const step = 1000

// host is what the guest's runtime sees of the world. The simulation has a virtual clock, and random
// numbers that are drawn from the seed.
type host struct {
	time   int64
	random uint64 // the state of the generator
	word   uint64 // what Read has not used yet of the last number,
	left   int    // and how many bytes that is
}

// Read reads random bytes of the SplitMix64 generator (Steele, Lea and Flood 2014). It is short, so that
// another host can have the same.
func (h *host) Read(p []byte) (int, error) {
	for i := range p {
		if h.left == 0 {
			h.random += 0x9e3779b97f4a7c15
			z := h.random
			z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
			z = (z ^ z>>27) * 0x94d049bb133111eb
			h.word, h.left = z^z>>31, 8
		}
		p[i] = byte(h.word)
		h.word >>= 8
		h.left--
	}
	return len(p), nil
}

func (h *host) now() int64 {
	h.time += step
	return h.time
}

// wall returns the same time as synctest's clock begins with.
func (h *host) wall() (sec int64, nsec int32) {
	const begin = 946684800 // 2000-01-01
	now := h.now()
	return begin + now/1e9, int32(now % 1e9)
}

func (h *host) sleep(ns int64) { h.time += ns }
