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
	pings = 5 // sent once the connection is made; their median is the round trip
	looks = 3 // readings of the server's clock; the one with the shortest round trip counts
)

// settings are the parameters that CONFIG GET asks for. INFO has some of them too, for users
// without the right to CONFIG. Many managed services have no CONFIG.
var settings = []string{
	"appendonly", "appendfsync", "save", "stop-writes-on-bgsave-error",
	"maxmemory", "maxmemory-policy", "timeout", "min-replicas-to-write", "min-replicas-max-lag",
}

// answers holds what one server reported about itself.
type answers struct {
	secured     bool              // the connection uses TLS
	err         error             // why the server did not answer, or stopped answering
	roundTrip   time.Duration     // zero if no ping was answered
	clock       *clockReading     // nil if TIME was refused or not answered
	info        map[string]string // from INFO; nil if it was refused or not answered
	config      map[string]string // from CONFIG GET; only the settings that are permitted
	cluster     map[string]string // from CLUSTER INFO, if the server is part of a Cluster
	lacksToLock []string          // commands that a lock needs and the server refuses
	lacksToWait []string          // commands that only a wait needs, and the server refuses
}

// asking asks one server over one connection, one question after the other. It waits up to patience
// for each answer. After the first answer that does not come, it asks nothing more.
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
	// A refusal to PING, because of the user's rights or because the server is loading, is an
	// answer. A client that is not let in at all gets no other answer either.
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

// do asks one question. It returns a server's refusal, and keeps any other error in a.err.
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
	case err.Error() != reply.Error(): // go-redis adds words to a refused handshake
		a.err = reply
	default:
		return reply
	}
	return nil
}

// timed measures how long an answer takes. ok is false if the server did not answer.
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

// infoFields returns the fields of a reply to INFO, without characters that could drive a terminal.
func infoFields(text string) map[string]string {
	fields := serverinfo.Fields(text)
	for name, value := range fields {
		fields[name] = plain.Printable(value)
	}
	return fields
}

// count parses a number that a server sent. It returns nil if there is none.
func count(text string) *int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// seconds converts a number of seconds that a server sent. It saturates.
func seconds(n int64) time.Duration {
	const most = int64(math.MaxInt64 / time.Second)
	return time.Duration(min(max(n, -most), most)) * time.Second
}

// refused reports whether err is a server's own reply.
func refused(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// says reports whether err has a server's reply that begins with code.
func says(err error, code string) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), code)
}

// unanswered describes what happened instead of an answer. secured reports whether the URL asks for
// TLS: a server without TLS waits for more bytes, and a server with TLS hangs up on a client
// without it.
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

// said words an error of the library or of a server for a sentence.
func said(err error) string {
	return strings.TrimRight(terminal.Cut(plain.Line(err), 300), ". ")
}
