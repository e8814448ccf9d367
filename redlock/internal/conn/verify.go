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

// verification holds what is known of the server at the other end of a connection.
type verification struct {
	server    *voter.Server
	clock     clock.Clock
	recordKey string         // the key of the node's identity record; empty: it has none
	met       voter.Identity // by its last report, maybe on an earlier connection; zero: none yet

	asked bool         // false: the next batch must ask
	sent  time.Time    // when the server was last asked
	at    time.Time    // when the question of the last valid answer was sent; zero: none
	voter quorum.Voter // the server, by its answer; zero: unknown
	err   error        // why the server did not identify itself, if it may do so the next time
	write string       // the identity record that is to be written; empty: none

	questions []question // the questions of the batch under way
	seen      voter.Info // the answers to them
}

// question is a command in front of a batch. Like all commands of this package it is sent once:
// after a silent redial another server could answer it. Its answer may be of any type.
type question struct {
	*redis.Cmd
	take func(answer any) error
}

func (question) NoRetry() bool { return true }

func newQuestion(take func(any) error, args ...any) question {
	return question{redis.NewCmd(context.Background(), args...), take}
}

// guardTime returns the time if the guard is on, and otherwise zero, as nothing needs it then.
func (v *verification) guardTime() (t time.Time) {
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

// ask puts the questions in front of the batch: the server's run id and, with the guard, its
// replication, the identity record and the time by its clock.
func (v *verification) ask(w *wire) {
	v.sent = v.guardTime()
	v.seen = voter.Info{}
	s := &v.seen
	v.questions = append(v.questions[:0], newQuestion(text(s.ReadServer), "info", "server"))
	if v.server.Guard().On() {
		v.questions = append(v.questions, newQuestion(text(s.ReadReplication), "info", "replication"))
		if v.recordKey != "" {
			v.questions = append(v.questions,
				newQuestion(text(s.ReadRecord), "get", v.recordKey),
				newQuestion(s.ReadTime, "time"))
		}
	}
	for _, q := range v.questions {
		w.out = append(w.out, q)
	}
}

// correctRecord returns the command, to be sent after the batch, that writes the identity record;
// nil if the record is right. If the command gets lost, the next verification finds the record
// wrong again.
func (v *verification) correctRecord() (cmd redis.Cmder) {
	if v.write == "" {
		return nil
	}
	args := []any{"set", v.recordKey, v.write}
	if !voter.Dated(v.write) {
		args = append(args, "nx") // another client may have written one with a date
	}
	v.write = ""
	return newQuestion(nil, args...)
}

// heard reads the answers, which come before those of the batch. batchErr is the error of the
// whole batch.
func (v *verification) heard(batchErr error) {
	defer func() { v.questions = v.questions[:0] }()
	v.asked, v.at, v.voter, v.err = true, time.Time{}, quorum.Voter{}, nil
	read := v.clock.Now()
	for _, q := range v.questions {
		answer, err := q.Result()
		// A server that is busy, or refuses a password that is being changed, may still do what
		// comes behind the question. Its votes do not count until it has identified itself, as
		// it may be another node's server too. Without the guard, a server that never answers
		// the question keeps its votes: its user may lack the right to INFO, or it may be
		// behind a proxy.
		if passing(err) {
			v.asked, v.err = false, errs.Scrub(err, "")
		}
		switch {
		case errors.Is(err, redis.Nil):
			err = q.take("") // no identity record; no other answer is nil
		case err == nil && answer == nil && batchErr != nil:
			err = errs.Scrub(batchErr, "") // a failed handshake leaves each command as it was
		case err == nil:
			err = q.take(answer)
		case errs.Says(err, "WRONGTYPE"):
			err = q.take("") // the key holds no identity record
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
	// The answer may have been under way for long, so the server is believed to be the same
	// from when the question was sent. See voter.Server.Met.
	v.at, v.voter = v.sent, unique.Make(v.seen.Run)
	if before := v.met; before.Run != "" && v.seen.Follows(before) {
		v.server.Replaced()
	}
	v.met = v.seen.Identity
	only, record := v.server.Met(v.seen, v.sent, read)
	v.asked = only // a duplicate is asked each time, as it may cease to be one
	if v.recordKey != "" {
		v.write = record
	}
}

// reconnected makes the next batch ask for the server's identity. The new connection may lead
// to another server than the one before, however that ended.
func (v *verification) reconnected() {
	v.asked, v.at, v.voter, v.err = false, time.Time{}, quorum.Voter{}, nil
}

// passing reports whether err is a server's refusal that ends by itself.
func passing(err error) bool {
	for _, prefix := range []string{"BUSY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "WRONGPASS", "NOAUTH"} {
		if errs.Says(err, prefix) {
			return true
		}
	}
	return false
}

// text makes a reader of any answer from a reader of strings. It returns ErrNoIdentity for an
// answer that is no string.
func text(take func(string) error) func(any) error {
	return func(answer any) error {
		s, ok := answer.(string)
		if !ok {
			return voter.ErrNoIdentity
		}
		return take(s)
	}
}

// forbidden is the error of a server that does not permit a question.
type forbidden struct {
	command string
	cause   error
}

func (e forbidden) Error() string {
	return fmt.Sprintf("does not permit %s, which Config.RestartGuard needs (ACL: +%s): %v",
		strings.ToUpper(e.command), e.command, e.cause)
}
func (e forbidden) Unwrap() error { return e.cause }
