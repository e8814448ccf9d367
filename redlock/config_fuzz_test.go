package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlock"
)

// Any Config and any arguments are either refused, with an error that names the value out of its
// documented range, or they make a lock. The lock is valid for some of its ttl and never for more.
// The oracle states the ranges once more, and computes in rationals.
//
// Values are accepted if the call gets as far as the context. The context has ended, so no node is
// asked. Then a node that grants everything is asked. Its clock stands still, so the lock shows
// exactly what was made of the ttl.
func FuzzConfig(f *testing.F) {
	for _, s := range []struct {
		nodeTimeout   time.Duration
		factor        float64
		floor, ttl    time.Duration
		prefix, named string
	}{
		{0, 0, 0, 10 * time.Second, "", "orders"},
		{-1, 0.01, 0, time.Second, "p:", "orders"},
		{1, 0, 1, 10 * time.Millisecond, "", "k"},
		{math.MaxInt64, 0.01, 2 * time.Millisecond, math.MaxInt64, "\x00\r\n", "\xff"},
		{time.Second, math.NaN(), 0, time.Second, "", "k"},
		{time.Second, math.Inf(1), 0, time.Second, "", "k"},
		{time.Second, math.Inf(-1), 0, time.Second, "", "k"},
		{time.Second, 1, 0, time.Second, "", "k"},
		{time.Second, math.Nextafter(1, 0), 0, math.MaxInt64, "", "k"},
		{time.Second, math.Nextafter(1, 0), 0, time.Second, "", "k"},
		{time.Second, math.Copysign(0, -1), 0, time.Second, "", "k"},
		{time.Second, -5, -1, time.Second, "", "k"},
		{time.Second, 0, math.MinInt64, time.Second, "", "k"},
		{time.Second, 0.5, math.MaxInt64, math.MaxInt64, "", "k"},
		{time.Second, 0.5, 5 * time.Millisecond, 12 * time.Millisecond, "", "k"},
		{time.Second, 0.5, 5 * time.Millisecond, 12*time.Millisecond + 1, "", "k"},
		{time.Second, 0, 9 * time.Millisecond, 10 * time.Millisecond, "", "k"},
		{time.Second, 0, 9*time.Millisecond - 1, 10*time.Millisecond + 999999, "", "k"},
		{time.Second, 0, 0, 10*time.Millisecond - 1, "", "k"},
		{time.Second, 0, 0, math.MinInt64, "p", ""},
	} {
		f.Add(int64(s.nodeTimeout), math.Float64bits(s.factor), int64(s.floor), s.prefix, s.named, int64(s.ttl))
	}
	over, end := context.WithCancel(context.Background())
	end()
	f.Fuzz(func(t *testing.T, nodeTimeout int64, factor uint64, floor int64, prefix, named string, ttl int64) {
		node := &scripted{}
		client := node.client(3)
		defer func() {
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		}()
		cfg := redlock.Config{
			NodeTimeout: time.Duration(nodeTimeout),
			Drift:       clock.Drift{Factor: math.Float64frombits(factor), Floor: time.Duration(floor)},
			KeyPrefix:   prefix,
			Clock:       frozen{},
		}
		r, err := redlock.New([]redis.UniversalClient{client}, cfg)
		wrong := wrongFields(cfg)
		if (r != nil) != (err == nil) {
			t.Errorf("%+v: %v and %v", cfg, r, err)
		}
		if !accepted(t, fmt.Sprintf("%+v", cfg), err, wrong) {
			return
		}
		defer func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}()

		drift := cfg.Drift
		if drift.Factor == 0 && drift.Floor == 0 {
			drift = clock.Drift{Factor: 0.01, Floor: 2 * time.Millisecond}
		}
		wrong = wrongArguments(named, time.Duration(ttl), drift)
		if onTheEdge(time.Duration(ttl), drift) && named != "" {
			return // both results are allowed
		}
		what := fmt.Sprintf("%+v, key %q, ttl %d", cfg, named, ttl)
		_, errTry := r.TryAcquire(over, named, time.Duration(ttl))
		_, errAcquire := r.Acquire(over, named, time.Duration(ttl))
		errDo := r.Do(over, named, time.Duration(ttl), func(context.Context) error { return nil })
		for _, err := range []error{errTry, errAcquire, errDo} {
			if errors.Is(err, context.Canceled) == (len(wrong) > 0) {
				t.Fatalf("%s: %v is wrong, and the error is %v", what, wrong, err)
			}
			if !strings.HasPrefix(fmt.Sprint(err), "redlock: ") {
				t.Errorf("%s: %v", what, err)
			}
			if len(wrong) > 0 {
				accepted(t, what, err, wrong)
			}
		}
		if len(wrong) > 0 {
			return
		}

		lock, err := r.TryAcquire(context.Background(), named, time.Duration(ttl))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		validity := int64(lock.Until().Sub(frozen{}.Now()))
		onNode := ttl - ttl%1e6
		left := new(big.Rat).Sub(rational(onNode), margin(onNode, drift))
		switch off := new(big.Rat).Sub(rational(validity), left); {
		case validity <= 0, validity > ttl:
			t.Errorf("%s: valid for %d", what, validity)
		case off.Abs(off).Cmp(slack(onNode)) > 0:
			t.Errorf("%s: valid for %d, and %s is left", what, validity, left.FloatString(3))
		}
		want := []string{"set", prefix + named, lock.Value(), "nx", "px", fmt.Sprint(onNode / 1e6)}
		if fmt.Sprintf("%q", node.sets) != fmt.Sprintf("%q", [][]string{want}) {
			t.Errorf("%s: %q", what, node.sets)
		}
		if err := lock.Release(context.Background()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	})
}

// accepted checks that the error names one of the wrong values, or that there is none if no value
// is wrong. It reports whether there is none.
func accepted(t *testing.T, what string, err error, wrong []string) bool {
	t.Helper()
	if len(wrong) == 0 {
		if err != nil {
			t.Errorf("%s: nothing is wrong, and the error is %v", what, err)
		}
		return err == nil
	}
	if err == nil {
		t.Errorf("%s: %v is wrong, and there is no error", what, wrong)
		return false
	}
	for _, name := range wrong {
		if strings.HasPrefix(err.Error(), "redlock: "+name+" ") {
			return false
		}
	}
	t.Errorf("%s: %v is wrong, and the error is %v", what, wrong, err)
	return false
}

// wrongFields returns the fields that are out of the ranges that Config and clock.Drift document.
func wrongFields(cfg redlock.Config) (wrong []string) {
	if cfg.NodeTimeout < 0 {
		wrong = append(wrong, "Config.NodeTimeout")
	}
	// "part of the ttl, from 0 to below 1"
	if f := cfg.Drift.Factor; math.IsNaN(f) || math.IsInf(f, 0) || f < 0 || f >= 1 {
		wrong = append(wrong, "Config.Drift.Factor")
	}
	// "fixed part, not negative"
	if cfg.Drift.Floor < 0 {
		wrong = append(wrong, "Config.Drift.Floor")
	}
	return wrong
}

// wrongArguments returns the wrong arguments: an empty key, a ttl under 10 ms, or a ttl whose whole
// milliseconds leave less than its drift and a round trip of 1 ms.
func wrongArguments(key string, ttl time.Duration, d clock.Drift) (wrong []string) {
	if key == "" {
		wrong = append(wrong, "key")
	}
	if ttl < 10*time.Millisecond {
		return append(wrong, "ttl")
	}
	onNode := int64(ttl) - int64(ttl)%1e6
	left := new(big.Rat).Sub(rational(onNode-1e6), margin(onNode, d))
	if left.Sign() <= 0 {
		wrong = append(wrong, "ttl")
	}
	return wrong
}

// onTheEdge reports whether the rounding of the margin decides that a ttl leaves anything.
func onTheEdge(ttl time.Duration, d clock.Drift) bool {
	onNode := int64(ttl) - int64(ttl)%1e6
	left := new(big.Rat).Sub(rational(onNode-1e6), margin(onNode, d))
	return ttl > 0 && left.Abs(left).Cmp(slack(onNode)) <= 0
}

func margin(ttl int64, d clock.Drift) *big.Rat {
	m := new(big.Rat).SetFloat64(d.Factor)
	return m.Add(m.Mul(m, rational(ttl)), rational(int64(d.Floor)))
}

// slack is the possible error of a float64, plus the rounding to a nanosecond.
func slack(ttl int64) *big.Rat { return new(big.Rat).Add(big.NewRat(ttl, 1<<52), big.NewRat(3, 4)) }

func rational(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

// frozen is a clock that stands still.
type frozen struct{}

func (frozen) Now() time.Time { return time.Unix(0, 0) }

func (frozen) NewTimer(time.Duration) clock.Timer { return never{} }

func (frozen) AfterFunc(time.Duration, func()) clock.Timer { return never{} }

type never struct{}

func (never) C() <-chan time.Time { return nil }

func (never) Reset(time.Duration) bool { return true }

func (never) Stop() bool { return true }
