package redlocktest

import (
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

// InitialUptime is the uptime of a new master, and of one that has taken over by
// [Master.FailOver]. A client that does not trust servers that started a short time ago trusts
// these at once.
const InitialUptime = inmemory.InitialUptime

// Master is one in-memory Redis master and the link in front of it. Its methods are safe for
// concurrent use.
type Master inmemory.Master

func (m *Master) in() *inmemory.Master { return (*inmemory.Master)(m) }

// Addr returns the master's host and port, which never change. That of a virtual master is
// only a name: it cannot be dialled.
func (m *Master) Addr() string { return m.in().Addr() }

// URL returns the master's URL as redis.ParseURL takes it, with the password of
// [Master.SetPassword], or "" for a virtual master.
func (m *Master) URL() string { return m.in().URL() }

// Client returns a new client of this master, with go-redis's default options as changed by
// configure. [Masters.Close] closes it; the caller may do so earlier.
//
// Only the address and the password, if any, are set. A virtual master's client also gets the
// dialer, maintenance notifications off and a pool of 4096, without which go-redis does not
// work in a synctest bubble; configure can change these too.
func (m *Master) Client(configure ...func(*redis.Options)) *redis.Client {
	return m.in().Client(configure...)
}

// Miniredis returns the server behind the link. It gives access to keys and ttls past every
// fault, even while the master is dead, and to features of miniredis such as SetError, a hook
// or an ACL user. It is the same server for the master's whole life. Do not start or close it.
func (m *Master) Miniredis() *miniredis.Miniredis { return m.in().Miniredis() }

// SetPassword makes new connections authenticate as the default user; "" ends that. Clients
// and URLs handed out earlier lack the password, and a connection that has not authenticated
// is refused from its next command. Call it while no client is connecting, because miniredis
// reads passwords without a lock.
func (m *Master) SetPassword(password string) { m.in().SetPassword(password) }

// Commands returns the commands that reached the server since the start or the last
// [Master.ResetCommands], oldest first, each as its upper-case name and its arguments.
// Handshakes are included. Commands that a script calls are not, nor those that were lost or
// still wait behind a stall or a delay. A command is in the log before its reply is sent.
// Killing or emptying the master does not empty the log.
func (m *Master) Commands() [][]string { return m.in().Commands() }

// ResetCommands empties the log of commands. Nothing else bounds it, so a long test should
// call this from time to time.
func (m *Master) ResetCommands() { m.in().ResetCommands() }

// Kill ends the master like SIGKILL ends a server that has written everything to disk. New
// connections are refused and existing ones are cut; commands under way or waiting are lost;
// data and scripts stay. When Kill returns, no command is being executed, and the uptime is
// over. Killing a dead master does nothing.
//
// Kill waits for the command that is being executed, so do not call it from a miniredis hook.
func (m *Master) Kill() { m.in().Kill() }

// Restart brings the master back on its address with its scripts and its data, except for keys
// that have expired since. It kills a live master first. INFO reports a new process: a new
// run_id and master_replid, an uptime of 0, and the role of a master, even after Demote. A
// restart ends a Stall. Delays and losses belong to the network, so they persist.
//
// If another program has taken the port, Restart retries for about a second, then returns an
// error and leaves the master dead. After [Masters.Close] it always fails. A virtual master's
// port is never taken.
func (m *Master) Restart() error { return m.in().Restart() }

// RestartEmpty brings the master back like [Master.Restart], but without keys and scripts.
// After an error the master is dead, and its keys are gone.
func (m *Master) RestartEmpty() error { return m.in().RestartEmpty() }

// FailOver makes another server take over the master's address: a replica that has been up for
// [InitialUptime] and has not received the keys yet, because replication is asynchronous. The
// old server is killed and does not come back. A client finds no keys and no scripts, a long
// uptime, a new run_id and master_replid, and the old master_replid in master_replid2.
// Otherwise, errors included, FailOver is like [Master.RestartEmpty].
func (m *Master) FailOver() error { return m.in().FailOver() }

// Demote makes the master a replica of some other server, as REPLICAOF does. Connections stay
// open. INFO reports role:slave and the other server's master_replid. Reads are answered;
// writes get READONLY. A script ends with READONLY at its first command that miniredis does
// not mark as reading (TIME is one such). Demoting a replica does nothing. A restart makes it
// a master again, because the role is not saved.
//
// The keys stay as they are and expire in time. A real replica would take over the other
// server's keys; a test that needs those can add them with [Master.Miniredis].
//
// A write that had reached the server before is executed, and so is a transaction already
// queued with MULTI, by its EXEC. miniredis hooks see a GETRANGE in place of a refused write,
// and EVAL_RO for EVAL.
func (m *Master) Demote() { m.in().Demote() }

// Promote makes a demoted master a master again, as REPLICAOF NO ONE does. It keeps its keys,
// connections, run_id and uptime. Its master_replid is new, and its master_replid2 is its id
// as a replica. Promoting a master does nothing.
func (m *Master) Promote() { m.in().Promote() }

// FlushScripts empties the script cache, as SCRIPT FLUSH does; the next EVALSHA gets NOSCRIPT.
// It fails, without any effect, only if a miniredis hook answers the command, or if the server
// requires a password that [Master.SetPassword] did not set.
func (m *Master) FlushScripts() error { return m.in().FlushScripts() }

// JumpClock moves the clock by which keys expire, as an operator or NTP may do on a server.
// Every key has d less to live, or more if d is negative; a key with no time left expires.
// Keys without a ttl, and keys that are set later, are not affected. The uptime in INFO, which
// Redis computes from its wall clock, moves too. So does TIME, even in scripts, but not in a
// transaction, nor after the caller has set a miniredis hook.
func (m *Master) JumpClock(d time.Duration) { m.in().JumpClock(d) }
