package redlocktest

import "time"

// Stall stops the master like SIGSTOP stops a server. It still accepts connections and bytes,
// but executes nothing. The reply to a command that had reached the server before is still
// sent. Stalling a stalled master does nothing.
func (m *Master) Stall() { m.in().Stall() }

// Resume ends a stall, as SIGCONT does. Everything sent meanwhile is executed, even for
// clients that have hung up, and a key that is set then gets its full ttl.
func (m *Master) Resume() { m.in().Resume() }

// Delay makes everything sent from now on arrive later: a request by the first delay and its
// reply by the second, 0 for none. Order is kept, any number of messages can be under way, and
// those already under way keep their delay. The end of a connection arrives after what was
// sent before, so a request arrives late even if its client gives up. Connecting takes no
// time.
func (m *Master) Delay(request, reply time.Duration) { m.in().Delay(request, reply) }

// LoseReplies makes the master execute each of the next n requests, on any connection, and cut
// the connection instead of replying. 0 cancels outstanding losses.
//
// A request is what a client sends in one go: a command or a pipeline. A connection's
// handshake (HELLO, AUTH, SELECT, CLIENT, READONLY) passes and is not counted. A client that
// retries uses up another loss.
func (m *Master) LoseReplies(n int) { m.in().LoseReplies(n) }

// LoseRequests loses each of the next n requests, as counted by [Master.LoseReplies], before
// it reaches the master, and cuts its connection. 0 cancels outstanding losses. If both kinds
// are outstanding, requests are lost first.
func (m *Master) LoseRequests(n int) { m.in().LoseRequests(n) }

// LoseMessages loses each of the next n messages that the server publishes, on any channel, to
// any subscriber, and from scripts too. PUBLISH counts the receiver, and the connection stays
// open. A negative n loses all messages until the next call; 0 cancels outstanding losses. A
// message of 4 kB or more is not lost.
func (m *Master) LoseMessages(n int) { m.in().LoseMessages(n) }

// DelayMessages makes messages that the server publishes from now on arrive later by d, in
// addition to the delay of [Master.Delay]; 0 ends that. Order is kept, so what the server
// sends to a subscriber after a message waits for it. Messages under way keep their delay, and
// one of 4 kB or more has none.
func (m *Master) DelayMessages(d time.Duration) { m.in().DelayMessages(d) }

// BreakSubscriptions cuts every connection with a subscription, as CLIENT KILL TYPE PUBSUB
// does, with everything under way on it. Others stay open. When it returns, PUBLISH counts
// none of those cut. Do not call it from a miniredis hook.
func (m *Master) BreakSubscriptions() { m.in().BreakSubscriptions() }

// RefuseSubscriptions answers later SUBSCRIBE and PSUBSCRIBE commands with an error, given as
// on the wire without the dash; "" ends that. Existing subscriptions stay. "NOPERM this user
// has no permissions to run the 'subscribe' command" is the error of a server that does not
// permit it, and "ERR unknown command 'subscribe'" that of a proxy that lacks it.
//
// A miniredis hook sees a refused command as a GETRANGE.
func (m *Master) RefuseSubscriptions(err string) { m.in().RefuseSubscriptions(err) }
