package redlock

import "time"

// verification is what is known of the server at the other end of a connection.
type verification struct {
	server *server
	asked  bool      // since it was due
	at     time.Time // when it last answered; zero: it has not, or the answer was no good
	infos  []infoCmd // those of the batch under way
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

// ask puts INFO in front of the batch.
func (v *verification) ask(w *wire) {
	v.infos = append(v.infos[:0], newInfo("server"))
	if v.server.guard.on() {
		v.infos = append(v.infos, newInfo("replication"))
	}
	for _, cmd := range v.infos {
		w.out = append(w.out, cmd)
	}
}

// heard takes the answers, which are there before those of the batch: batchErr is that
// of a batch that has none.
func (v *verification) heard(batchErr error) {
	if len(v.infos) == 0 {
		return
	}
	v.asked, v.at = true, time.Time{}
	now := v.server.guard.clock.Now() // not earlier than the server looked at its clock
	var s sighting
	for i, cmd := range v.infos {
		text, err := cmd.Result()
		switch {
		case err == nil && text == "" && batchErr != nil:
			err = batchErr // a failed handshake leaves each command as it was
		case err == nil && i == 0:
			err = s.readServer(text)
		case err == nil:
			err = s.readReplication(text)
		case answered(err):
			err = forbidden{scrub(err, "")}
		default:
			err = scrub(err, "")
		}
		if err != nil {
			v.server.doubt(err)
			v.infos = v.infos[:0]
			return
		}
	}
	v.infos = v.infos[:0]
	v.at = now
	v.asked = v.server.meet(s, now) // who is listed twice is asked each time, as that may end
}

// reconnected has the next batch ask. Whoever only looks for servers that are listed
// twice need not know again after a connection was given back in good order.
func (v *verification) reconnected(broken bool) {
	if broken || v.server.guard.on() {
		v.asked, v.at = false, time.Time{}
	}
}
