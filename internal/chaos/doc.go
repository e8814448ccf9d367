// Package chaos is a test: it lets client processes contend for keys on real
// redis-server processes while masters, connections and clients fail at random,
// and judges afterwards whether two of them ever held one key.
//
// Each client is a process of its own, because that is what a lock is for and
// because only a process can be stopped and killed. It writes down what it
// believed and when, as history.Events on the machine's monotonic clock, which
// all processes share; internal/history judges what they wrote.
//
// The faults keep to what docs/safety.md assumes: a master that comes back
// without its memory stays away for longer than the longest ttl, and what it has
// answered is on its disk before. Everything else may fail, majorities included.
// A second test breaks that assumption on purpose, to show that a violation would
// be found.
//
// The seed decides which faults are drawn, in which order. It does not decide when
// they strike: the processes run in real time.
//
// It needs Linux: a child must die with its parent even while it is stopped, which
// only that kernel promises.
package chaos
