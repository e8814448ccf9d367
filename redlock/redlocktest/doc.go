// Package redlocktest runs in-memory Redis masters for tests of programs that take quorum
// locks, and makes them fail on request.
//
//	masters := redlocktest.Start(t, 5)
//	nodes := masters.Clients() // five go-redis clients with default options
//	masters.Kill(0, 1)         // a minority is gone
//
// Each master is a [miniredis] server behind a link of this package. The server executes
// commands; the link can refuse connections, and stall, delay, lose or cut off requests and
// replies. Like a fault of the network or of the process, this hits every client of a master,
// whatever its library.
//
// # Real and virtual time
//
// [Start] and [New] listen on free loopback ports, and keys expire by the real clock.
// [StartVirtual] is for use inside a [testing/synctest] bubble. It opens no socket:
// connections are in-process, and expiry, delays and timeouts follow the bubble's clock. An
// hour passes in no time, and a delay of 20 ms is exact to the nanosecond.
//
// # Server identity
//
// INFO identifies a server as in Redis 7.0, by run_id, master_replid, role and
// uptime_in_seconds in its sections server and replication. So tests can show that a client
// notices a different server behind an address:
//
//   - [Master.Restart] and [Master.RestartEmpty]: the process started again, with its memory
//     or without.
//   - [Master.FailOver]: another server, up for long, takes over the address. It lacks the
//     writes that the old one had not replicated.
//   - [Master.Demote] and [Master.Promote]: the server became a replica, or a master again,
//     and its connections stay open.
//
// A new master reports an uptime of [InitialUptime], for clients that distrust a young server.
// A miniredis hook always sees INFO with one argument: the sections with a space between them,
// or "default". A script that calls INFO gets miniredis's own reply.
//
// # Publish and subscribe
//
// Messages reach subscribers like any reply, and every fault hits their connections too. Four
// faults are only for messages and subscriptions:
//
//   - [Master.LoseMessages]: a published message is counted but does not arrive.
//   - [Master.DelayMessages]: messages arrive late.
//   - [Master.BreakSubscriptions] and [Path.BreakSubscriptions]: the connections of
//     subscribers are cut, and no others.
//   - [Master.RefuseSubscriptions]: no client can subscribe.
//
// There are no sharded channels (SSUBSCRIBE, SPUBLISH).
//
// # Limits
//
// miniredis stands for one Redis server whose replies are right. It does not persist,
// replicate or evict, and its INFO lacks most lines; tests about those need a real
// redis-server. On a 32-bit platform miniredis cuts the numbers that a script returns to 32
// bits. There, TryAcquire without tokens works, but not Config.Fencing or waiting in a queue.
//
// [miniredis]: https://pkg.go.dev/github.com/alicebob/miniredis/v2
package redlocktest
