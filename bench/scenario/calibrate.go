package scenario

import (
	"bufio"
	"net"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/redisserver"
)

const (
	calibrations = 3  // each takes off what the one before was too slow
	pings        = 11 // of each, of which the median counts
)

// delay is what a link must hold bytes back so that a PING through it takes rtt.
// The timers that release the bytes are late, by up to a millisecond where the
// process is idle, and the proxy and the server take their time too; a cell that
// said 10 ms and took 11 would blame the subjects for it. It is found once for
// each rtt.
func (r *Runner) delay(link *redisserver.Link, rtt time.Duration) (time.Duration, error) {
	if d, ok := r.delays[rtt]; ok || rtt == 0 {
		return d, nil
	}
	c, err := net.DialTimeout("tcp", link.Addr(), 5*time.Second)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	defer link.Delay(0)
	d := rtt
	for range calibrations {
		link.Delay(d)
		median, err := ping(c)
		if err != nil {
			return 0, err
		}
		d = max(d-(median-rtt), 0)
	}
	if r.delays == nil {
		r.delays = make(map[time.Duration]time.Duration)
	}
	r.delays[rtt] = d
	return d, nil
}

// ping is the median of some round trips.
func ping(c net.Conn) (time.Duration, error) {
	took := make([]time.Duration, pings)
	replies := bufio.NewReader(c)
	for i := range took {
		start := time.Now()
		if _, err := c.Write([]byte("PING\r\n")); err != nil {
			return 0, err
		}
		if _, err := replies.ReadString('\n'); err != nil {
			return 0, err
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[pings/2], nil
}
