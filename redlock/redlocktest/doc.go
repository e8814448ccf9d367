// Package redlocktest runs in-memory Redis masters for tests of programs that
// take quorum locks, and breaks them on request.
//
//	masters := redlocktest.Start(t, 5)
//	nodes := masters.Clients() // five go-redis clients with default options
//	masters.Kill(0, 1)         // a minority is gone
//
// Each master is a [miniredis] server behind a link layer of this package's
// own. The server executes commands; the link refuses, stalls, delays, loses
// and tears what travels to it and back. So a fault hits every client of a master,
// whatever library it is made with, exactly as a fault of the network or of
// the process would.
//
// # Real and virtual time
//
// [Start] and [New] listen on free loopback ports, and keys expire by the real
// clock. [StartVirtual] is for the inside of a [testing/synctest] bubble: it
// opens no socket, connections are in-process, and expiry, delays and timeouts
// follow the bubble's clock, so that an hour passes in no time and a delay of
// 20 ms is 20 ms to the nanosecond.
//
// # What it is not
//
// miniredis stands for one Redis server whose replies are right; it does not
// persist, replicate or evict, and it implements no INFO server section. Tests
// about those need a real redis-server.
//
// [miniredis]: https://pkg.go.dev/github.com/alicebob/miniredis/v2
package redlocktest
