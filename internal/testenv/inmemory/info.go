package inmemory

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// sections are the sections of INFO that masters have, in Redis's order.
var sections = []struct {
	name string
	text func(*Master) string
}{
	{"server", (*Master).serverSection},
	{"clients", (*Master).clientsSection},
	{"stats", (*Master).statsSection},
	{"replication", (*Master).replicationSection},
}

// info returns these sections of INFO, each once, in Redis's order. It omits sections that
// masters do not have, and returns "" if none remains.
func (m *Master) info(names []string) string {
	var texts []string
	for _, s := range sections {
		if slices.ContainsFunc(names, func(name string) bool {
			return name == s.name || name == "default" || name == "all" || name == "everything"
		}) {
			texts = append(texts, s.text(m))
		}
	}
	return strings.Join(texts, "\r\n")
}

// serverSection has the lines of a real server that identify it. The process id is 1, as in a
// container: ids of different lengths would make replies of runs with the same seed differ in
// length.
func (m *Master) serverSection() string {
	self := m.self()
	_, port, _ := net.SplitHostPort(m.addr)
	// Like Redis, count the seconds that the wall clock has begun since the start.
	uptime := time.Now().Unix() - self.since.Unix()
	return lines("# Server",
		"redis_version:7.0.15",
		"redis_mode:standalone",
		"process_id:1",
		"run_id:"+self.runID,
		"tcp_port:"+port,
		fmt.Sprint("uptime_in_seconds:", uptime),
		fmt.Sprint("uptime_in_days:", uptime/(24*60*60)),
	)
}

// clientsSection and statsSection are as in miniredis.

func (m *Master) clientsSection() string {
	return lines("# Clients", fmt.Sprint("connected_clients:", m.server.ClientsLen()))
}

func (m *Master) statsSection() string {
	return lines("# Stats",
		fmt.Sprint("total_connections_received:", m.server.TotalConnections()),
		fmt.Sprint("total_commands_processed:", m.server.TotalCommands()),
	)
}

// A replica's master has an address of RFC 5737, which no host has, so a client that follows
// it does not get far.
func (m *Master) replicationSection() string {
	self := m.self()
	text := lines("# Replication", "role:master")
	if self.replica {
		text = lines("# Replication", "role:slave", "master_host:192.0.2.1", "master_port:6379", "master_link_status:up")
	}
	return text + lines("connected_slaves:0",
		"master_failover_state:no-failover",
		"master_replid:"+self.replID,
		"master_replid2:"+self.replID2,
		"master_repl_offset:0",
		fmt.Sprint("second_repl_offset:", self.secondOffset),
	)
}

func lines(of ...string) string { return strings.Join(of, "\r\n") + "\r\n" }
