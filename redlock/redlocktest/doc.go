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
// # Who a server is
//
// INFO tells servers apart as that of Redis 7.0 does, by run_id, master_replid, role
// and uptime_in_seconds in its sections server and replication. So tests can show
// that a client takes note when the server behind an address is not the one it was:
//
//   - [Master.Restart] and [Master.RestartEmpty]: the process started again, with
//     its memory or without.
//   - [Master.FailOver]: another server, up for long, answers in its place and lacks
//     what the old one had not passed on.
//   - [Master.Demote] and [Master.Promote]: the server became a replica, or a master
//     again, while its connections live on.
//
// A new master has been up for [InitialUptime], for clients that distrust a young one.
// To a miniredis hook, INFO always has one argument: the sections with a space
// between them, or "default". A script that calls INFO gets miniredis's own reply.
//
// # Publish and subscribe
//
// Messages reach subscribers as any reply does, and every fault hits their connections
// too. Four are about them alone:
//
//   - [Master.LoseMessages]: what is published is counted, and does not arrive.
//   - [Master.DelayMessages]: it arrives late.
//   - [Master.BreakSubscriptions] and [Path.BreakSubscriptions]: the connections of
//     subscribers are cut, and no others.
//   - [Master.RefuseSubscriptions]: nobody can subscribe.
//
// There are no sharded channels (SSUBSCRIBE, SPUBLISH).
//
// # What it is not
//
// miniredis stands for one Redis server whose replies are right; it does not
// persist, replicate or evict, and its INFO lacks most lines. Tests about those need
// a real redis-server. On a 32-bit platform miniredis cuts the numbers that a script
// returns to 32 bits, so locks with Config.Fencing, and waiting in a queue, do not work
// there; TryAcquire without tokens does.
//
// [miniredis]: https://pkg.go.dev/github.com/alicebob/miniredis/v2
package redlocktest
