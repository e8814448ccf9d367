package redlocktest

// Tear has f asked about everything that is sent from now on and not lost by
// [Path.Shape]: of so many bytes, how many arrive? With fewer than all of them the
// rest is lost, and the connection cut behind what arrives; f never says less than
// 0. It is asked as Shape's f is: once for each request and once for each reply, in
// their order on a connection, but not for connecting. nil tears nothing.
//
// Of a torn request the master executes the commands that arrived whole, in their
// order, and of the one that the cut goes through nothing. Their replies arrive,
// and then the end of the connection. Of a torn reply the command has been
// executed, and so are those of its request that come after it: the client gets the
// replies to the earlier ones, the beginning of this one, and then the end.
func (p *Path) Tear(f func(d Direction, bytes int) (arrive int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.torn = f
}

// arrives asks what Tear has set how much of so many bytes arrives.
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

// tear returns the commands of a request that arrive whole, and whether the rest of
// it is lost.
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
