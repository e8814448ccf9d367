package scenario

import (
	"bufio"
	"net"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
)

const (
	calibrations = 3  // each corrects the error of the one before
	pings        = 11 // in each calibration, of which the median counts
)

// delay returns how long a link must hold bytes back so that a PING through it takes rtt. The
// timers that release the bytes are late, by up to a millisecond in an idle process, and the
// proxy and the server take time too. Without a correction, a cell labelled 10 ms might take
// 11, and its subjects would seem slower. The delay is measured once for each rtt.
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

// ping returns the median of some round trips.
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
