// Package port reserves loopback TCP ports for servers that are killed and restarted, so that
// no other program takes the port meanwhile.
package port

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
)

// Loopback is the address of all reserved ports.
const Loopback = "127.0.0.1"

// portFrom and portFloor are lower bounds of the search. Ports below portFrom tend to belong
// to services, and those below 1024 are privileged.
const (
	portFrom  = 20000
	portFloor = 1024
)

// Reservation keeps a TCP port for one server, even while that server is dead and waits to be
// restarted. It holds the UDP socket of the same number, which Redis does not use. Test
// binaries that run at the same time see each other's sockets, and the kernel removes them
// with the process.
type Reservation struct {
	Port int
	conn net.PacketConn
}

// Addr returns the port with its host.
func (r *Reservation) Addr() string { return net.JoinHostPort(Loopback, strconv.Itoa(r.Port)) }

// Release frees the port. It does nothing to a nil reservation.
func (r *Reservation) Release() {
	if r != nil {
		_ = r.conn.Close()
	}
}

// Reserve finds a free port below the ephemeral range, starting at a random one. Another
// program may still take the TCP port of that number before the caller listens on it.
func Reserve() (*Reservation, error) {
	low, high := portRange()
	start := rand.IntN(high - low)
	for i := range high - low {
		port := low + (start+i)%(high-low)
		conn, err := net.ListenPacket("udp4", net.JoinHostPort(Loopback, strconv.Itoa(port)))
		if err != nil {
			continue
		}
		r := &Reservation{Port: port, conn: conn}
		if probe, err := net.Listen("tcp", r.Addr()); err == nil {
			_ = probe.Close()
			return r, nil
		}
		r.Release() // another program has the TCP port
	}
	return nil, errors.New("port: none free from " + strconv.Itoa(low) + " to " + strconv.Itoa(high-1))
}

// portRange is the range to search, [low, high).
var portRange = sync.OnceValues(func() (low, high int) {
	return searchRange(Ephemeral())
})

// searchRange returns ports outside [first, last], the ephemeral range: those from portFrom up
// to it, or else all below it, or else those above it.
func searchRange(first, last int) (low, high int) {
	const enough = 500
	switch {
	case first-portFrom >= enough:
		return portFrom, first
	case first-portFloor >= enough:
		return portFloor, first
	case 65536-(last+1) >= enough:
		return last + 1, 65536
	default: // all ports are ephemeral: a collision is possible, and retried
		return portFrom, 32768
	}
}

// Ephemeral returns the range of ports that the system gives to outgoing connections.
func Ephemeral() (first, last int) {
	if data, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if _, err := fmt.Sscan(string(data), &first, &last); err == nil {
			return first, last
		}
	}
	if runtime.GOOS == "linux" {
		return 32768, 60999
	}
	return 49152, 65535 // IANA's, which the BSDs and macOS use
}
