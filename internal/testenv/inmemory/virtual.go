package inmemory

import (
	"context"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// virtualAddr returns the i-th virtual master's address: 10.0.0.1:6379 and up. It is an IP
// literal because go-redis resolves names, and the resolver is outside the bubble.
func virtualAddr(i int) string {
	n := i + 1
	ip := netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
	return netip.AddrPortFrom(ip, 6379).String()
}

func (m *Master) remote() net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(m.addr)) }

// dialInProcess connects to the master over path p; nil is no path. If the master is down, it
// fails like a connection to a closed port.
func (m *Master) dialInProcess(ctx context.Context, p *Path) (net.Conn, error) {
	err := ctx.Err()
	if err == nil {
		if c, ok := m.connect(p, nil); ok {
			return c.Dialled(m.remote()), nil
		}
		err = os.NewSyscallError("connect", syscall.ECONNREFUSED)
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: m.remote(), Err: err}
}
