package timeline

import (
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// attempt is one acquisition of a client, from its beginning to the end of its lock.
type attempt struct {
	client, op int
	key        string
	asked      time.Duration
	answered   time.Duration // Granted or Denied; Never while it waits
	denied     bool
	lock       history.Lock // if it was granted
	released   time.Duration
	renewals   int    // Extended and Renewed
	err        string // why it was denied, ended or not released
	quit       time.Duration
}

func (a attempt) held() bool { return !a.denied && a.answered != history.Never }

// stop returns when the holder had to stop using its lock: it gave the lock up, validity was
// over, or the lock's context was done.
func (a attempt) stop() time.Duration { return min(a.lock.End(), a.lock.Ended) }

// tail returns when the lock's last trace ends. A release takes time, and a context may be
// done before or after the end of validity.
func (a attempt) tail() time.Duration {
	t := a.lock.End()
	if a.lock.Releasing != history.Never && a.released != history.Never {
		t = max(t, a.released)
	}
	if a.lock.Ended != history.Never {
		t = max(t, a.lock.Ended)
	}
	return t
}

// until returns when nothing more of the attempt is drawn.
func (a attempt) until() time.Duration {
	if a.held() {
		return max(a.answered, a.tail())
	}
	return min(a.answered, a.quit)
}

// attempts returns the acquisitions in the order of their beginnings.
func attempts(events []history.Event) []attempt {
	type id struct{ client, op int }
	var list []attempt
	place := map[id]int{}
	for _, e := range events {
		at := id{e.Client, e.Op}
		if e.Kind == history.Died || e.Kind == history.Closed {
			for i := range list {
				if list[i].client == e.Client {
					list[i].quit = min(list[i].quit, e.At)
				}
			}
		}
		i, known := place[at]
		// A recording may begin in the middle of an acquisition.
		if !known && (e.Kind == history.Asked || e.Kind == history.Granted || e.Kind == history.Denied) {
			i, known = len(list), true
			place[at] = i
			list = append(list, attempt{
				client: e.Client, op: e.Op, key: e.Key, asked: e.At,
				answered: history.Never, released: history.Never, quit: history.Never,
			})
		}
		if known {
			list[i].note(e)
		}
	}
	for _, l := range history.Locks(events) {
		list[place[id{l.Client, l.Op}]].lock = l
	}
	return list
}

func (a *attempt) note(e history.Event) {
	switch e.Kind {
	case history.Granted:
		a.answered = e.At
	case history.Denied:
		a.answered, a.denied = e.At, true
	case history.Extended, history.Renewed:
		a.renewals++
	case history.Released:
		a.released = min(a.released, e.At)
	}
	if e.Err != "" && (e.Kind == history.Denied || e.Kind == history.Released || e.Kind == history.Ended) {
		a.err = e.Err
	}
}

// stint is a time during which something of a client or a node lasted.
type stint struct{ from, to time.Duration }

// pauses returns the times in which the client was paused, and its absences: from its death
// until it asks for something again, if it ever does.
func pauses(events []history.Event, client int) (pauses, absences []stint) {
	paused, dead := history.Never, history.Never
	end := func(list *[]stint, from *time.Duration, at time.Duration) {
		if *from != history.Never {
			*list = append(*list, stint{from: *from, to: at})
			*from = history.Never
		}
	}
	for _, e := range events {
		if e.Client != client {
			continue
		}
		switch e.Kind {
		case history.Paused:
			paused = min(paused, e.At)
		case history.Resumed:
			end(&pauses, &paused, e.At)
		case history.Died, history.Closed:
			end(&pauses, &paused, e.At)
			dead = min(dead, e.At)
		case history.Asked:
			end(&absences, &dead, e.At)
		}
	}
	end(&pauses, &paused, history.Never)
	end(&absences, &dead, history.Never)
	return pauses, absences
}
