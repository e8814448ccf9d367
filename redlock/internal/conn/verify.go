package conn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unique"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/voter"
)

// verification is what is known of the server at the other end of a connection.
type verification struct {
	server *voter.Server
	clock  clock.Clock
	marker string         // the key of the node's marker; empty: it has none
	met    voter.Identity // what the server last said, maybe on an earlier connection; zero: nothing yet

	asked bool         // since it was due
	sent  time.Time    // when it was last asked
	at    time.Time    // when it was asked what it has answered; zero: it has not, or the answer was no good
	voter quorum.Voter // the server by its answer; zero while that is not known
	err   error        // why the server did not say who it is, though it may the next time
	write string       // what is to be written to the marker

	questions []question // those of the batch under way
	seen      voter.Info // what they were answered
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
	if v.server.Guard().On() {
		t = v.clock.Now()
	}
	return t
}

// due reports whether a batch that is sent now must ask.
func (v *verification) due(now time.Time) bool {
	switch {
	case !v.asked:
		return true
	case v.server.Guard().On():
		return v.at.IsZero() || now.Sub(v.at) >= voter.Believed
	default:
		return false
	}
}

// ask puts the questions in front of the batch: who are you, and with the guard also
// whose replica you were, and what the marker says by your clock.
func (v *verification) ask(w *wire) {
	v.sent = v.now()
	v.seen = voter.Info{}
	s := &v.seen
	v.questions = append(v.questions[:0], newQuestion(text(s.ReadServer), "info", "server"))
	if v.server.Guard().On() {
		v.questions = append(v.questions, newQuestion(text(s.ReadReplication), "info", "replication"))
		if v.marker != "" {
			v.questions = append(v.questions,
				newQuestion(text(s.ReadRecord), "get", v.marker),
				newQuestion(s.ReadTime, "time"))
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
	if !voter.Dated(v.write) {
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
	read := v.clock.Now()
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
			v.server.Unidentified(err)
			return
		}
	}
	// The answer may have been under way for long: the server is believed to be the same
	// from when it was asked. See voter.Server.Met.
	v.at, v.voter = v.sent, unique.Make(v.seen.Run)
	if before := v.met; before.Run != "" && v.seen.Follows(before) {
		v.server.Replaced()
	}
	v.met = v.seen.Identity
	only, record := v.server.Met(v.seen, v.sent, read)
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
			return voter.ErrNoIdentity
		}
		return take(s)
	}
}

// forbidden is a server's refusal to say who it is.
type forbidden struct {
	command string
	cause   error
}

func (e forbidden) Error() string {
	return fmt.Sprintf("does not permit %s, which Config.RestartGuard needs (ACL: +%s): %v",
		strings.ToUpper(e.command), e.command, e.cause)
}
func (e forbidden) Unwrap() error { return e.cause }
