package sim

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// align brings the scheduler to the same point of its round, so that a run can be
// repeated. Of the goroutines that are ready on one processor it takes the first in
// the processor's own queue, but every 61st time the first in the queue of all
// processors, where [runtime.Gosched] puts its caller. So when a lane that yields goes
// on, while a burst that was just answered is ready, depends on how many goroutines
// have run since the process began.
func align() {
	const many = 128 // more than 61, and less than the 256 that a processor's queue holds
	var all sync.WaitGroup
	var ran atomic.Int32
	for range many {
		all.Go(func() { ran.Add(1) })
	}
	runtime.Gosched() // returns at the 61st time
	for range ran.Load() {
		all.Go(func() {}) // as many as ever are left
	}
	all.Wait()
}
