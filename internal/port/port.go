// Package port reserves TCP ports of loopback for servers that are killed and
// come back, so that nobody takes the port meanwhile.
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

// Loopback is where all reserved ports are.
const Loopback = "127.0.0.1"

// portFrom and portFloor bound the search from below: ports under portFrom tend
// to be services' own, those under 1024 are privileged.
const (
	portFrom  = 20000
	portFloor = 1024
)

// Reservation keeps a TCP port for one server, also while that server is dead
// and waits to be restarted: it is the UDP socket of the same number, which Redis
// has no use for. Test binaries that run at the same time see each other's
// sockets, and the kernel removes them with the process.
type Reservation struct {
	Port int
	conn net.PacketConn
}

// Addr is the port with its host.
func (r *Reservation) Addr() string { return net.JoinHostPort(Loopback, strconv.Itoa(r.Port)) }

// Release lets the port go. It does nothing to a nil reservation.
func (r *Reservation) Release() {
	if r != nil {
		_ = r.conn.Close()
	}
}

// Reserve finds a free port below the ephemeral range, from a random start. The
// TCP port of that number may still belong to a stranger; whoever listens finds
// out.
func Reserve() (*Reservation, error) {
	low, high := portRange()
	start := rand.IntN(high - low)
	for i := range high - low {
		port := low + (start+i)%(high-low)
		conn, err := net.ListenPacket("udp4", net.JoinHostPort(Loopback, strconv.Itoa(port)))
		if err == nil {
			return &Reservation{Port: port, conn: conn}, nil
		}
	}
	return nil, errors.New("port: none free from " + strconv.Itoa(low) + " to " + strconv.Itoa(high-1))
}

// portRange is the range to search, [low, high).
var portRange = sync.OnceValues(func() (low, high int) {
	return searchRange(Ephemeral())
})

// searchRange picks the ports outside [first, last], the ephemeral range: from
// portFrom up to it, else whatever there is below, else above.
func searchRange(first, last int) (low, high int) {
	const enough = 500
	switch {
	case first-portFrom >= enough:
		return portFrom, first
	case first-portFloor >= enough:
		return portFloor, first
	case 65536-(last+1) >= enough:
		return last + 1, 65536
	default: // everything is ephemeral: a collision is possible, and retried
		return portFrom, 32768
	}
}

// Ephemeral returns the ports that the system gives to outgoing connections.
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
