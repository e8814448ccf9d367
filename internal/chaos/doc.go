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
// There are four storms:
//
//   - plain: locks without tokens;
//   - fenced: with tokens, and clients whose clocks are up to an hour off. No master
//     loses its fences, which is an assumption of theirs;
//   - guarded: with the restart guard, while masters are killed and back at once
//     without their memory, one or two of five every 1.3 s. Clients' clocks agree as
//     well as the order of tokens demands where fences are forgotten;
//   - unguarded: the same without the guard. Its violations are counted, and in a run
//     that is long enough there must be some: what the guarded one does not find was
//     not there.
//
// -chaos.for is how long the plain one lasts. The others take a third of it, the guarded
// one two fifths, beside the quarantines at its start and end.
//
// The seed decides which faults are drawn, in which order. It does not decide when
// they strike: the processes run in real time.
//
// It needs Linux: a child must die with its parent even while it is stopped, which
// only that kernel promises.
package chaos
