package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/bench/load"
	"github.com/quorumlock/redlock/bench/masters"
	"github.com/quorumlock/redlock/bench/result"
	"github.com/quorumlock/redlock/bench/subject"
)

// BenchmarkCycle acquires and releases, with five masters and the number of callers in its
// name. An operation is one cycle of any caller, so ns/op is the inverse of the throughput.
// The time that a cycle takes its caller is in p50-ns and p99-ns. B/op and allocs/op are of
// the whole process. With a restart guard, the benchmark first waits until the masters' uptime
// is longer; that is not measured.
//
//	go test -bench Cycle -count 10 ./bench | benchstat -col /lib -
func BenchmarkCycle(b *testing.B) {
	subject.Quiet()
	set := masters.Start(b, 5)
	turns := 0
	for _, callers := range []int{1, 16, 128, 1024} {
		for _, spec := range subject.All() {
			if !runs(spec.Name, callers) {
				continue
			}
			name := fmt.Sprintf("callers=%d/lib=%s", callers, label(spec.Name))
			b.Run(name, func(b *testing.B) {
				turns++
				cycle(b, set, spec, callers, turns)
			})
		}
	}
}

// runs reports whether a subject is useful with this number of callers.
func runs(name result.Subject, callers int) bool {
	switch name {
	case result.Floor:
		return callers == 1
	case result.Ceiling:
		return callers == 1024
	}
	return true
}

// label is a subject's name without the spaces and commas that would confuse benchstat.
func label(name result.Subject) string {
	return strings.NewReplacer(", ", "-", " ", "-").Replace(string(name))
}

func cycle(b *testing.B, set *masters.Set, spec subject.Spec, callers, number int) {
	if err := set.AwaitUptime(b.Context(), spec.Uptime()); err != nil {
		b.Fatal(err)
	}
	l, err := spec.Open(subject.Target{Addrs: set.Addrs(set.Size()), Callers: callers})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = l.Close()
		if len(spec.Stays) > 0 { // otherwise each turn would add more
			if err := set.Flush(context.Background()); err != nil {
				b.Error(err)
			}
		}
	}()
	b.ReportAllocs()
	if c, ok := l.(*subject.Ceiling); ok {
		b.ResetTimer()
		if err := c.Cycles(b.N); err != nil {
			b.Fatal(err)
		}
		return
	}
	o, err := load.Run(context.Background(), l, load.Turn{
		Number: number, Callers: callers, Cycles: b.N,
		Begin: func() error { b.ResetTimer(); return nil },
		End:   b.StopTimer,
	})
	if err != nil {
		b.Fatal(err)
	}
	if o.Errors > 0 {
		b.Fatalf("%d of %d cycles failed: %v", o.Errors, o.Errors+o.Cycles, o.Err)
	}
	latency := o.Cycle.Latency()
	b.ReportMetric(float64(latency.P50), "p50-ns")
	b.ReportMetric(float64(latency.P99), "p99-ns")
}
