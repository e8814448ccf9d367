// Package chaos is a test. Client processes contend for keys on real redis-server processes
// while masters, connections and clients fail at random. Afterwards the test checks whether
// two clients ever held one key.
//
// Each client is a process, because locks are for processes, and because only a process can be
// stopped and killed. It records what it believed and when, as history.Events on the machine's
// monotonic clock, which all processes share. internal/lab/history checks these records.
//
// The faults keep to the assumptions of docs/safety.md: a master writes what it has answered
// to its disk first, and one that comes back without its memory stays away for longer than the
// longest ttl. Everything else may fail, majorities included. There are four storms:
//
//   - plain: locks without tokens;
//   - fenced: locks with tokens, and clients whose clocks are up to an hour off. No master
//     loses its fences, which tokens assume;
//   - guarded: with the restart guard. Every 1.3 s, one or two of five masters are killed and
//     come back at once without their memory. Clients' clocks agree as closely as the order of
//     tokens requires where fences are forgotten;
//   - unguarded: the same without the guard. Its violations are counted, and a run that is
//     long enough must have some. They show that the guarded storm would find violations.
//
// The flag -chaos.for sets how long the plain storm lasts. The others last a third of it, and
// the guarded one two fifths, plus the quarantines at its start and end.
//
// The seed decides which faults are drawn, in which order. It does not decide when they
// strike, because the processes run in real time.
//
// The test needs Linux: a child must die with its parent even while it is stopped, and only
// that kernel guarantees it.
package chaos
