package sim

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// align brings the scheduler to the same point of its round, so that a run can be repeated.
// A processor runs the goroutines that are ready in its own queue, but every 61st time the
// first in the queue of all processors, where [runtime.Gosched] puts its caller. So the
// number of goroutines that have run since the process began decides when a yielding lane
// goes on beside a burst that was just answered.
func align() {
	const many = 128 // more than 61, and less than the 256 that a processor's queue holds
	var all sync.WaitGroup
	var ran atomic.Int32
	for range many {
		all.Go(func() { ran.Add(1) })
	}
	runtime.Gosched() // returns at the 61st time
	for range ran.Load() {
		all.Go(func() {}) // now as many are left as before any ran
	}
	all.Wait()
}
