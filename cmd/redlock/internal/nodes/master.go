package nodes

import (
	"cmp"
	"net"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/plain"
	"github.com/quorumlock/redlock/redlock"
)

// master is one node as it was found. Its exported fields are those of --json, which leaves out
// values that the server does not report or this user may not see.
type master struct {
	Addr string `json:"addr"`

	// State is "ok" if the master votes, and otherwise the code of the warning that explains why
	// not.
	State string `json:"state"`

	RoundTrip  cli.Micros    `json:"round_trip_us,omitempty"` // the median
	Clock      *clockReading `json:"clock,omitempty"`         // ahead of this host's
	Quarantine cli.Micros    `json:"quarantine_us,omitempty"` // time left until its votes count

	Version   string `json:"version,omitempty"`
	RunID     string `json:"run_id,omitempty"`
	Uptime    *int64 `json:"uptime_s,omitempty"`
	Role      string `json:"role,omitempty"`       // "master" or "replica"
	ReplicaOf string `json:"replica_of,omitempty"` // host and port

	Appendonly   string  `json:"appendonly,omitempty"`
	Appendfsync  string  `json:"appendfsync,omitempty"`
	Save         *string `json:"save,omitempty"` // empty if there are no snapshots
	Maxmemory    *int64  `json:"maxmemory,omitempty"`
	Policy       string  `json:"maxmemory_policy,omitempty"`
	Timeout      *int64  `json:"timeout_s,omitempty"`
	MinReplicas  *int64  `json:"min_replicas_to_write,omitempty"`
	MaxLag       *int64  `json:"min_replicas_max_lag_s,omitempty"`
	loading      bool
	replicas     *int64 // number of replicas that min-replicas-to-write counts
	saveFailed   bool   // the last snapshot failed, and the server therefore refuses writes
	appendFailed bool
	full         bool // maxmemory is used up, and nothing is evicted
	secured      bool // the connection uses TLS
	cluster      bool // it has only some of a Cluster's slots
	lacksToLock  []string
	lacksToWait  []string

	err         error // why it did not answer, or stopped answering
	patience    time.Duration
	unable      error  // why it could not inspect a key for a Redlock
	ineligible  error  // why its votes would not count; nil if they would, or if that is unknown
	duplicateOf string // the address under which the same server is listed, too
}

const stateOK = "ok"

// newMaster reads what the server behind addr has said.
func newMaster(addr string, a answers, patience time.Duration) *master {
	info, config := a.info, a.config
	m := &master{
		Addr: addr, State: stateOK, err: a.err, patience: patience,
		RoundTrip: cli.Micros(a.roundTrip), Clock: a.clock,

		Version: version(info),
		RunID:   info["run_id"],
		Uptime:  count(info["uptime_in_seconds"]),

		Appendonly:  cmp.Or(map[string]string{"0": "no", "1": "yes"}[info["aof_enabled"]], config["appendonly"]),
		Appendfsync: config["appendfsync"],
		Maxmemory:   count(cmp.Or(info["maxmemory"], config["maxmemory"])),
		Policy:      cmp.Or(info["maxmemory_policy"], config["maxmemory-policy"]),
		Timeout:     count(config["timeout"]),
		MinReplicas: count(config["min-replicas-to-write"]),
		MaxLag:      count(config["min-replicas-max-lag"]),

		secured:      a.secured,
		lacksToLock:  a.lacksToLock,
		lacksToWait:  a.lacksToWait,
		loading:      info["loading"] == "1",
		replicas:     count(info["min_slaves_good_slaves"]),
		saveFailed:   info["rdb_last_bgsave_status"] == "err" && config["stop-writes-on-bgsave-error"] != "no",
		appendFailed: info["aof_last_write_status"] == "err",
		cluster:      info["cluster_enabled"] == "1" && a.cluster["cluster_size"] != "1",
	}
	if save, ok := config["save"]; ok {
		m.Save = &save
		m.saveFailed = m.saveFailed && save != ""
	}
	switch info["role"] {
	case "master":
		m.Role = "master"
	case "slave":
		m.Role, m.ReplicaOf = "replica", net.JoinHostPort(info["master_host"], info["master_port"])
	}
	if used := count(info["used_memory"]); used != nil && m.Maxmemory != nil && *m.Maxmemory > 0 {
		if free := count(info["mem_not_counted_for_evict"]); free != nil {
			*used -= *free
		}
		m.full = m.Policy == "noeviction" && *used > *m.Maxmemory
	}
	return m
}

// version returns the name and version that the server gives itself. Servers that only speak Redis'
// protocol report the version of Redis that they follow as redis_version.
func version(info map[string]string) string {
	for _, other := range []string{"valkey", "redict", "dragonfly"} {
		if v := info[other+"_version"]; v != "" {
			return other + " " + strings.TrimPrefix(v, "df-v")
		}
	}
	return info["redis_version"]
}

// seen records what a Redlock found out: whether the node can inspect a key, and whether its votes
// count.
func (m *master) seen(unable error, node redlock.NodeStatus, now time.Time) {
	m.unable = unable
	for _, s := range node.Servers {
		m.ineligible = s.Err
		m.Quarantine = cli.Micros(max(s.Quarantine.Sub(now), 0))
		m.RunID = cmp.Or(m.RunID, plain.Printable(s.RunID))
	}
}
