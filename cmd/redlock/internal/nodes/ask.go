package nodes

import (
	"context"
	"errors"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/plain"
	"github.com/quorumlock/redlock/internal/serverinfo"
	"github.com/quorumlock/redlock/internal/terminal"
)

const (
	pings = 5 // after the connection is made; their median is the round trip
	looks = 3 // at the server's clock; that of the shortest round trip tells it best
)

// settings are what CONFIG GET is asked for. INFO has some of them too, for those who
// may not run CONFIG; many managed services have none.
var settings = []string{
	"appendonly", "appendfsync", "save", "stop-writes-on-bgsave-error",
	"maxmemory", "maxmemory-policy", "timeout", "min-replicas-to-write", "min-replicas-max-lag",
}

// answers are what one server has said of itself.
type answers struct {
	secured     bool              // by TLS
	err         error             // why it says nothing, or nothing more
	roundTrip   time.Duration     // 0: none
	clock       *clockReading     // nil: TIME is not permitted
	info        map[string]string // by INFO; nil: not permitted
	config      map[string]string // by CONFIG GET, as far as it is permitted
	cluster     map[string]string // by CLUSTER INFO, of a Cluster's server
	lacksToLock []string          // commands that a lock needs and that are refused
	lacksToWait []string          // those that a wait needs besides, to be woken
}

// asking asks one server over one connection, one question after the other, and waits no
// longer than patience for each answer. After the first that does not come it asks nothing.
type asking struct {
	ctx      context.Context
	conn     *redis.Conn
	patience time.Duration
	answers
}

func ask(ctx context.Context, client *redis.Client, prefix string, patience time.Duration) answers {
	a := &asking{ctx: ctx, conn: client.Conn(), patience: patience}
	a.secured = client.Options().TLSConfig != nil
	defer func() { _ = a.conn.Close() }()
	// A refusal to PING, by a user's rights or by a server that is loading, is an answer.
	// Somebody who is not let in at all is told nothing else either.
	refusal := a.do(func(ctx context.Context) error { return a.conn.Ping(ctx).Err() })
	if says(refusal, "NOAUTH") || says(refusal, "DENIED") {
		a.err = refusal
	}
	a.measure()
	a.readClock()
	a.readInfo()
	a.readConfig()
	a.readRights(client, prefix)
	return a.answers
}

// do asks. It returns a server's refusal; anything else that goes wrong is kept in err.
func (a *asking) do(question func(context.Context) error) (refusal error) {
	if a.err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(a.ctx, a.patience)
	defer cancel()
	err := question(ctx)
	var reply redis.Error
	switch {
	case err == nil:
	case !errors.As(err, &reply):
		a.err = err
	case err.Error() != reply.Error(): // go-redis' own words around a refused handshake
		a.err = reply
	default:
		return reply
	}
	return nil
}

// timed is how long the question took; false if it was not answered.
func (a *asking) timed(question func(context.Context) error) (sent time.Time, took time.Duration, ok bool) {
	sent = time.Now()
	_ = a.do(question)
	return sent, time.Since(sent), a.err == nil
}

func (a *asking) measure() {
	var all []time.Duration
	for range pings {
		if _, took, ok := a.timed(func(ctx context.Context) error { return a.conn.Ping(ctx).Err() }); ok {
			all = append(all, took)
		}
	}
	if len(all) > 0 {
		slices.Sort(all)
		a.roundTrip = all[len(all)/2]
	}
}

func (a *asking) readClock() {
	for range looks {
		var there time.Time
		sent, took, ok := a.timed(func(ctx context.Context) (err error) {
			there, err = a.conn.Time(ctx).Result()
			return err
		})
		if ok && !there.IsZero() && (a.clock == nil || took/2 < time.Duration(a.clock.Within)) {
			off := max(there.Sub(sent.Add(took/2).Round(0)), -math.MaxInt64) // so that it can be negated
			a.clock = &clockReading{cli.Micros(off), cli.Micros(took / 2)}
		}
	}
}

func (a *asking) readInfo() {
	_ = a.do(func(ctx context.Context) error {
		text, err := a.conn.Info(ctx).Result()
		if err == nil {
			a.info = infoFields(text)
		}
		return err
	})
	if a.info["cluster_enabled"] != "1" {
		return
	}
	_ = a.do(func(ctx context.Context) error {
		text, err := a.conn.ClusterInfo(ctx).Result()
		if err == nil {
			a.cluster = infoFields(text)
		}
		return err
	})
}

func (a *asking) readConfig() {
	a.config = map[string]string{}
	var got []*redis.MapStringStringCmd
	_ = a.do(func(ctx context.Context) error {
		_, err := a.conn.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, name := range settings {
				got = append(got, pipe.ConfigGet(ctx, name))
			}
			return nil
		})
		return err
	})
	for _, cmd := range got {
		for name, value := range cmd.Val() {
			a.config[strings.ToLower(name)] = plain.Printable(value)
		}
	}
}

// infoFields returns the fields of a reply to INFO, without what could drive a terminal.
func infoFields(text string) map[string]string {
	fields := serverinfo.Fields(text)
	for name, value := range fields {
		fields[name] = plain.Printable(value)
	}
	return fields
}

// count reads a number that a server gave; nil if it gave none.
func count(text string) *int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// seconds is a number of them that a server gave; it saturates.
func seconds(n int64) time.Duration {
	const most = int64(math.MaxInt64 / time.Second)
	return time.Duration(min(max(n, -most), most)) * time.Second
}

// refused reports that err is a server's own reply.
func refused(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// says reports that err has a server's reply which begins with code.
func says(err error, code string) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), code)
}

// unanswered is what happened instead of an answer. secured is whether the URL asks for TLS:
// a server without it waits for more, and one with it hangs up on whoever does not speak it.
func unanswered(err error, patience time.Duration, secured bool) string {
	var timeout net.Error
	slow := errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
	closed := plain.Closed(err)
	switch {
	case slow && secured:
		return "It does not answer within " + patience.String() + ". If it does not speak TLS there, the URL is redis://"
	case slow:
		return "It does not answer within " + patience.String()
	case closed && !secured:
		return "It closes the connection (maxclients, protected-mode?). If it speaks TLS there, the URL is rediss://"
	case closed:
		return "It closes the connection (maxclients? a certificate of the client's, by cert and key in the URL?)"
	}
	return "It cannot be reached: " + said(plain.Error(err))
}

// said is an error of the library or of a server in a sentence.
func said(err error) string {
	return strings.TrimRight(terminal.Cut(plain.Line(err), 300), ". ")
}
