package report

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/quorumlock/redlock/bench/result"
)

// synthetic is a whole run of figures that are invented but likely, the same at every call.
func synthetic() result.Run {
	rng := rand.New(rand.NewPCG(1, 2))
	run := result.Run{
		When:    time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC),
		Command: "go -C bench run .",
		Machine: result.Machine{
			CPU: "Example CPU @ 2.50GHz", Cores: 2, MemoryGiB: 7.76, OS: "linux",
			Kernel: "6.1.0", Go: "go1.26.0", Redis: "7.0.15",
			Modules: map[string]string{
				"github.com/redis/go-redis/v9":     "v9.23.0",
				"github.com/go-redsync/redsync/v4": "v4.18.1",
				"github.com/bsm/redislock":         "v0.9.4",
				"github.com/redis/rueidis":         "v1.0.79",
				"github.com/quorumlock/redlock":    "this tree",
			},
		},
	}
	for round := range 5 {
		drift := 1 + 0.3*rng.Float64()
		sample := func(c result.Cell, s result.Subject, us, perSecond float64) {
			x := drift * (0.95 + 0.1*rng.Float64())
			run.Samples = append(run.Samples, made(c, s, round, us*x, perSecond/x))
		}
		for _, callers := range []int{1, 16, 128, 1024} {
			c := result.Cell{Scenario: result.Callers, Callers: callers, Nodes: 5}
			for _, id := range identities { // a map's order is not the same at every call
				s, of := id.subject, shapes[id.subject]
				rate := min(1e6/of.us*math.Pow(float64(callers), 0.7), of.limit)
				if s == result.Floor && callers > 1 || s == result.Ceiling && callers < 128 || id.variant {
					continue
				}
				sample(c, s, float64(callers)*1e6/rate, rate)
			}
		}
		for _, nodes := range []int{1, 3, 5, 7, 9} {
			c := result.Cell{Scenario: result.Nodes, Callers: 1, Nodes: nodes}
			for _, s := range []result.Subject{result.Quorumlock, result.Redsync, result.RedsyncFF, result.Floor} {
				us := shapes[s].us * (0.4 + 0.12*float64(nodes))
				sample(c, s, us, 1e6/us)
			}
		}
		for _, f := range [][2]int{{0, 0}, {1, 0}, {2, 0}, {0, 1}} {
			c := result.Cell{Scenario: result.Faults, Callers: 16, Nodes: 5, Hung: f[0], Refused: f[1]}
			for _, s := range []result.Subject{result.Quorumlock, result.Redsync, result.RedsyncFF} {
				rate := shapes[s].limit / 2
				switch {
				case s == result.Redsync && f[0] == 2:
					run.Samples = append(run.Samples, result.Sample{Cell: c, Subject: s, Round: round, Errors: 12})
					continue
				case s == result.Redsync && f[0] == 1:
					rate = 2.6
				case s == result.RedsyncFF && f[0] > 0:
					rate = 900
				}
				sample(c, s, 16e6/rate, rate)
			}
		}
		for _, rtt := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond} {
			c := result.Cell{Scenario: result.Links, Callers: 1, Nodes: 5, RTT: rtt}
			for _, id := range identities {
				s, of := id.subject, shapes[id.subject]
				if s == result.Ceiling || id.variant {
					continue
				}
				us := of.us + 2*float64(rtt.Microseconds())
				sample(c, s, us, 1e6/us)
			}
		}
		for _, at := range []struct {
			callers int
			rtt     time.Duration
		}{{1, 0}, {16, 0}, {128, 0}, {1, 10 * time.Millisecond}, {16, 10 * time.Millisecond}} {
			c := result.Cell{Scenario: result.Guarantees, Callers: at.callers, Nodes: 5, RTT: at.rtt}
			for _, s := range []result.Subject{result.Quorumlock, result.Fenced, result.Guarded, result.Both} {
				us := shapes[s].us*float64(at.callers) + 2*float64(at.rtt.Microseconds())
				sample(c, s, us, float64(at.callers)*1e6/us)
			}
		}
		for _, c := range contendedCells() {
			for _, s := range []result.Subject{result.Quorumlock, result.Fair, result.Redsync, result.Rueidis} {
				run.Samples = append(run.Samples, wants(c, s, round, drift))
			}
		}
	}
	run.Idles = []result.Idle{{Waiters: 1000, For: time.Minute, Settled: 3 * time.Second, Cores: 0.004, PerSecond: 0.05}}
	for _, locks := range []int{1000, 10_000, 100_000} {
		run.Renewals = append(run.Renewals, result.Renewal{
			Locks: locks, TTL: 30 * time.Second, For: time.Minute,
			Cores: float64(locks) * 2.5e-6, PerLock: 1180, PerSecond: float64(locks) / 10,
			AcquireTook: time.Duration(locks) * 15 * time.Microsecond,
			ReleaseTook: time.Duration(locks) * 14 * time.Microsecond,
		})
	}
	return run
}

// shapes are a likely cycle of one caller in microseconds, and the most cycles a second.
var shapes = map[result.Subject]struct{ us, limit, allocs float64 }{
	result.Quorumlock: {190, 31_000, 16},
	result.Redsync:    {360, 3100, 152},
	result.RedsyncFF:  {330, 3400, 155},
	result.Redislock:  {95, 19_000, 24},
	result.Rueidis:    {150, 15_000, 60},
	result.Floor:      {175, 6000, 0},
	result.Ceiling:    {200, 48_000, 0},
	result.Fenced:     {260, 17_000, 18},
	result.Guarded:    {192, 31_000, 16},
	result.Both:       {262, 17_000, 18},
}

// made is a sample with a long-tailed distribution around a median cycle of us.
func made(c result.Cell, s result.Subject, round int, us, perSecond float64) result.Sample {
	of := func(share float64) result.Latency {
		at := func(p float64) time.Duration {
			tail := math.Pow(-math.Log(1-p/100)/math.Ln2, 0.45)
			return time.Duration(share * us * 1000 * (0.55 + 0.45*tail))
		}
		l := result.Latency{P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: at(99.999)}
		for p := range 100 {
			l.Quantiles = append(l.Quantiles, at(float64(p)))
		}
		l.Quantiles = append(l.Quantiles, l.Max)
		return l
	}
	return result.Sample{
		Cell: c, Subject: s, Round: round, Cycles: int(perSecond) + 1, PerSecond: perSecond,
		Cycle: of(1), Acquire: of(0.52), Allocs: shapes[s].allocs,
	}
}

// contendedCells are cells of every kind in which all callers want one key.
func contendedCells() (cells []result.Cell) {
	const far = 10 * time.Millisecond
	one := result.Cell{Scenario: result.Contended, Nodes: 5}
	for _, think := range []time.Duration{0, 20 * time.Millisecond} {
		for _, hold := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond} {
			for _, n := range []int{2, 4, 16, 64} {
				c := one
				c.Callers, c.Hold, c.Think = n, hold, think
				cells = append(cells, c)
			}
		}
	}
	apart, away, together := one, one, one
	apart.Callers, apart.Hold, apart.Processes = 16, 5*time.Millisecond, true
	away.Callers, away.RTT = 4, far
	together.Callers, together.OneClient = 1000, true
	return append(cells, apart, away, together)
}

// wants is a sample of callers that want one key. An uncontended cycle takes 400 µs plus two
// round trips, times slower, and the gap is one and a half cycles.
func wants(c result.Cell, s result.Subject, round int, slower float64) result.Sample {
	times := func(d time.Duration, x float64) time.Duration { return time.Duration(float64(d) * x) }
	alone := times(400*time.Microsecond+2*c.RTT, slower)
	gap := times(alone, 1.5)
	return result.Sample{
		Cell: c, Subject: s, Round: round, Cycles: 1000, PerSecond: 1 / (c.Hold + gap).Seconds(),
		Contention: &result.Contention{
			Alone: alone, Held: c.Hold, Gap: result.Latency{P50: gap, P99: 2 * gap}, Passed: 0.75, Jain: 0.9876,
			Longest: 3 * time.Duration(c.Callers) * (c.Hold + gap), Commands: 12.5,
		},
	}
}

// small is a run of two rounds that can be checked by hand.
func small() result.Run {
	run := synthetic()
	run.Samples = nil
	run.Renewals = run.Renewals[2:]
	ten := result.Cell{Scenario: result.Links, Callers: 1, Nodes: 5, RTT: 10 * time.Millisecond}
	hung := result.Cell{Scenario: result.Faults, Callers: 16, Nodes: 5, Hung: 2}
	crowd := result.Cell{Scenario: result.Guarantees, Callers: 128, Nodes: 5}
	far := result.Cell{Scenario: result.Guarantees, Callers: 1, Nodes: 5, RTT: 10 * time.Millisecond}
	wanted := result.Cell{Scenario: result.Contended, Callers: 16, Nodes: 5, Hold: 5 * time.Millisecond}
	away := result.Cell{Scenario: result.Contended, Callers: 4, Nodes: 5, RTT: 10 * time.Millisecond}
	well := result.Cell{Scenario: result.Faults, Callers: 16, Nodes: 5}
	for round, slower := range []float64{1, 1.5} {
		run.Samples = append(run.Samples,
			made(alone, result.Quorumlock, round, 200*slower, 5000/slower),
			made(alone, result.Redsync, round, 400*slower, 2500/slower),
			made(alone, result.Floor, round, 160*slower, 6250/slower),
			made(well, result.Quorumlock, round, 1600*slower, 10_000/slower),
			made(hung, result.Quorumlock, round, 1600*slower, 9000/slower),
			result.Sample{Cell: hung, Subject: result.Redsync, Round: round, Errors: 4},
			made(ten, result.Quorumlock, round, 20_000*slower, 50/slower),
			made(crowd, result.Quorumlock, round, 3200*slower, 40_000/slower),
			made(crowd, result.Fenced, round, 5120*slower, 25_000/slower),
			made(crowd, result.Guarded, round, 3200*slower, 40_000/slower),
			made(far, result.Quorumlock, round, 20_000*slower, 50/slower),
			made(far, result.Fenced, round, 20_400*slower, 49/slower),
			wants(wanted, result.Quorumlock, round, slower),
			wants(wanted, result.Redsync, round, 2*slower),
			wants(away, result.Quorumlock, round, slower),
		)
	}
	return run
}
