package redlock

import (
	"context"
	"errors"
	"time"
	"unique"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
)

// verification is what is known of the server at the other end of a connection.
type verification struct {
	server *server
	marker string   // the key of the node's marker; empty: it has none
	met    identity // what the server last said, maybe on an earlier connection; zero: nothing yet

	asked bool         // since it was due
	sent  time.Time    // when it was last asked
	at    time.Time    // when it was asked what it has answered; zero: it has not, or the answer was no good
	voter quorum.Voter // the server by its answer; zero while that is not known
	err   error        // why the server did not say who it is, though it may the next time
	write string       // what is to be written to the marker

	questions []question // those of the batch under way
	seen      sighting   // what they were answered
}

// question is a command in front of a batch. Like all of ours it is sent once, or a
// silent redial would hide the server that it is about. Its answer may be of any type.
type question struct {
	*redis.Cmd
	take func(answer any) error
}

func (question) NoRetry() bool { return true }

func newQuestion(take func(any) error, args ...any) question {
	return question{redis.NewCmd(context.Background(), args...), take}
}

// now is when what is sent now is sent, for who has to know.
func (v *verification) now() (t time.Time) {
	if g := v.server.guard; g.on() {
		t = g.clock.Now()
	}
	return t
}

// due reports whether a batch that is sent now must ask.
func (v *verification) due(now time.Time) bool {
	switch g := v.server.guard; {
	case !v.asked:
		return true
	case g.on():
		return v.at.IsZero() || now.Sub(v.at) >= believed
	default:
		return false
	}
}

// ask puts the questions in front of the batch: who are you, and with the guard also
// whose replica you were, and what the marker says by your clock.
func (v *verification) ask(w *wire) {
	v.sent = v.now()
	v.seen = sighting{}
	s := &v.seen
	v.questions = append(v.questions[:0], newQuestion(text(s.readServer), "info", "server"))
	if v.server.guard.on() {
		v.questions = append(v.questions, newQuestion(text(s.readReplication), "info", "replication"))
		if v.marker != "" {
			v.questions = append(v.questions,
				newQuestion(text(s.readMark), "get", v.marker),
				newQuestion(s.readTime, "time"))
		}
	}
	for _, q := range v.questions {
		w.out = append(w.out, q)
	}
}

// remark is the command that writes the marker, if that was wrong, for behind the batch.
// If it gets lost, the next verification finds it wrong again.
func (v *verification) remark() (cmd redis.Cmder) {
	if v.write == "" {
		return nil
	}
	args := []any{"set", v.marker, v.write}
	if readMarker(v.write).since == 0 {
		args = append(args, "nx") // somebody may have come with a time
	}
	v.write = ""
	return newQuestion(nil, args...)
}

// heard takes the answers, which are there before those of the batch: batchErr is that
// of a batch that has none.
func (v *verification) heard(batchErr error) {
	defer func() { v.questions = v.questions[:0] }()
	v.asked, v.at, v.voter, v.err = true, time.Time{}, quorum.Voter{}, nil
	read := v.server.guard.clock.Now()
	for _, q := range v.questions {
		answer, err := q.Result()
		// A server that is busy, or refuses a password that is being changed, may do what
		// comes behind the question. Its votes do not count until it has said who it is, as
		// it may be another node's server too. One that never answers the question keeps
		// its votes: a user without the right to INFO, or a proxy.
		if passing(err) {
			v.asked, v.err = false, errs.Scrub(err, "")
		}
		switch {
		case errors.Is(err, redis.Nil):
			err = q.take("") // no marker; anything else has something to say
		case err == nil && answer == nil && batchErr != nil:
			err = errs.Scrub(batchErr, "") // a failed handshake leaves each command as it was
		case err == nil:
			err = q.take(answer)
		case errs.Says(err, "WRONGTYPE"):
			err = q.take("") // it is no marker
		case errs.Says(err, "NOPERM"), errs.Says(err, "ERR unknown command"):
			err = forbidden{q.Name(), errs.Scrub(err, "")}
		default:
			err = errs.Scrub(err, "")
		}
		if err != nil {
			v.server.doubt(err)
			return
		}
	}
	// The answer may have been under way for long: the server is believed to be the same
	// from when it was asked. See server.meet.
	v.at, v.voter = v.sent, unique.Make(v.seen.run)
	if before := v.met; before.run != "" && v.seen.follows(before) {
		v.server.replaced()
	}
	v.met = v.seen.identity
	only, record := v.server.meet(v.seen, v.sent, read)
	v.asked = only // who is listed twice is asked each time, as that may end
	if v.marker != "" {
		v.write = record
	}
}

// reconnected makes the next batch ask for the server's identity. The address may lead to
// another server than it did on the connection before, however that ended.
func (v *verification) reconnected() {
	v.asked, v.at, v.voter, v.err = false, time.Time{}, quorum.Voter{}, nil
}

// passing reports a server's refusal that ends by itself.
func passing(err error) bool {
	for _, prefix := range []string{"BUSY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "WRONGPASS", "NOAUTH"} {
		if errs.Says(err, prefix) {
			return true
		}
	}
	return false
}

// text takes an answer that is a string.
func text(take func(string) error) func(any) error {
	return func(answer any) error {
		s, ok := answer.(string)
		if !ok {
			return errNoIdentity
		}
		return take(s)
	}
}
