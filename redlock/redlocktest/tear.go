package redlocktest

// Tear makes the path call f for everything sent from now on that [Path.Shape] does not lose.
// f returns how many of the bytes arrive, at least 0. If some do not, they are lost, and the
// connection is cut after those that do. Like Shape's f, it is called once for each request
// and once for each reply, in their order on a connection, but not for connecting. nil ends
// the tearing.
//
// Of a torn request, the master executes the commands that arrived whole, in order, but not
// the one that was cut; the replies arrive before the end of the connection. If a reply is
// torn, its command and the later ones of its request have been executed. The client gets the
// earlier replies and the beginning of this one before the end.
func (p *Path) Tear(f func(d Direction, bytes int) (arrive int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.torn = f
}

// arrives returns how many of the bytes arrive, according to Tear.
func (p *Path) arrives(d Direction, bytes int) int {
	if p == nil {
		return bytes
	}
	p.mu.Lock()
	f := p.torn
	p.mu.Unlock()
	if f == nil {
		return bytes
	}
	return min(f(d, bytes), bytes)
}

// tear returns the commands of a request that arrive whole, and whether the rest is lost.
func (p *Path) tear(request []command) (whole []command, torn bool) {
	bytes := 0
	for _, c := range request {
		bytes += len(c.raw)
	}
	left := p.arrives(ToMaster, bytes)
	if left == bytes {
		return request, false
	}
	for i, c := range request {
		if left -= len(c.raw); left < 0 {
			return request[:i], true
		}
	}
	return request, true // not reached: less than all of it arrives
}
