package leash

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestReins(t *testing.T) {
	start := time.Unix(0, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	type look struct {
		now, until int
		lost       bool
		want       act
		next       int // in ms
	}
	for name, tc := range map[string]struct {
		grace, margin int
		looks         []look
	}{
		"asked, then killed before the end": {300, 100, []look{
			{0, 1000, false, wait, 700}, {699, 1000, false, wait, 700}, {700, 1000, false, ask, 900},
			{800, 1000, false, wait, 900}, {900, 1000, false, kill, 900},
		}},
		"renewed": {300, 100, []look{
			{0, 1000, false, wait, 700}, {700, 1333, false, wait, 1033}, {1033, 1333, false, ask, 1233},
		}},
		"renewed when it was asked already": {300, 100, []look{
			{700, 1000, false, ask, 900}, {800, 1900, false, wait, 900}, {900, 1900, false, kill, 900},
		}},
		"nobody is asked": {0, 100, []look{
			{0, 1000, false, wait, 900}, {899, 1000, false, wait, 900}, {900, 1000, false, kill, 900},
		}},
		"a grace within the margin": {50, 100, []look{
			{0, 1000, false, wait, 900}, {900, 1000, false, kill, 900},
		}},
		"looked late":         {300, 100, []look{{950, 1000, false, kill, 950}}},
		"much too late":       {300, 100, []look{{5000, 1000, false, kill, 5000}}},
		"lost before its end": {300, 100, []look{{10, 1000, true, kill, 10}}},
		"lost while it ends":  {300, 100, []look{{700, 1000, false, ask, 900}, {701, 1000, true, kill, 701}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := reins{grace: time.Duration(tc.grace) * time.Millisecond, margin: time.Duration(tc.margin) * time.Millisecond}
			for _, l := range tc.looks {
				got, next := r.due(at(l.now), at(l.until), l.lost)
				if got == ask {
					r.asked(at(l.until))
				}
				assert.Equal(t, l.want, got, "at %d", l.now)
				assert.Equal(t, at(l.next), next, "at %d", l.now)
			}
		})
	}
}
