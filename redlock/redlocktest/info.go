package redlocktest

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// sections are those of INFO that masters have, in the order in which Redis
// prints them.
var sections = []struct {
	name string
	text func(*Master) string
}{
	{"server", (*Master).serverSection},
	{"clients", (*Master).clientsSection},
	{"stats", (*Master).statsSection},
	{"replication", (*Master).replicationSection},
}

// info returns what INFO says in these sections, each once, whatever their order.
// Those that masters do not have are left out; "" if none remains.
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

// Of a real server's lines these are the ones that tell servers apart. The process
// has id 1, as in a container: numbers of varying length would make the replies of
// two runs with one seed differ in length.
func (m *Master) serverSection() string {
	self := m.self()
	_, port, _ := net.SplitHostPort(m.addr)
	// Redis counts the seconds that its wall clock has begun since.
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

// The next two are as miniredis has them.

func (m *Master) clientsSection() string {
	return lines("# Clients", fmt.Sprint("connected_clients:", m.server.ClientsLen()))
}

func (m *Master) statsSection() string {
	return lines("# Stats",
		fmt.Sprint("total_connections_received:", m.server.TotalConnections()),
		fmt.Sprint("total_commands_processed:", m.server.TotalCommands()),
	)
}

// An address of RFC 5737 is nobody's: a client that follows a replica to its master
// does not get far.
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
