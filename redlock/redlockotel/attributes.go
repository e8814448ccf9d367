package redlockotel

import (
	"net"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/quorumlock/redlock/redlock"
)

// The attributes of this package. Those of nodes and errors are the semantic conventions'.
const (
	operationKey    = attribute.Key("redlock.operation")
	outcomeKey      = attribute.Key("redlock.outcome")
	causeKey        = attribute.Key("redlock.cause")
	voteKey         = attribute.Key("redlock.vote")
	ttlKey          = attribute.Key("redlock.ttl")
	waitDurationKey = attribute.Key("redlock.wait.duration")
	roundsKey       = attribute.Key("redlock.rounds")
	grantedKey      = attribute.Key("redlock.granted")
	needKey         = attribute.Key("redlock.need")
	nodesKey        = attribute.Key("redlock.nodes")
	votesKey        = attribute.Key("redlock.votes")
)

// labels are the attributes of a measurement, except for that of WithKey. They are words of this
// library and the addresses of nodes, so there are few.
type labels struct {
	operation, outcome, cause, vote string
	node                            string // its address
}

func (l labels) attributes() []attribute.KeyValue {
	var kvs []attribute.KeyValue
	for _, kv := range []attribute.KeyValue{
		operationKey.String(l.operation), outcomeKey.String(l.outcome), causeKey.String(l.cause), voteKey.String(l.vote),
	} {
		if kv.Value.AsString() != "" {
			kvs = append(kvs, kv)
		}
	}
	if l.node != "" {
		kvs = append(kvs, serverAttributes(l.node)...)
	}
	return kvs
}

// attributeSet is a set of attributes as instruments take it.
type attributeSet struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

func newAttributeSet(kvs []attribute.KeyValue) attributeSet {
	option := metric.WithAttributeSet(attribute.NewSet(kvs...))
	return attributeSet{[]metric.AddOption{option}, []metric.RecordOption{option}}
}

// attributeSets remembers sets. To make one takes longer than to measure with it.
type attributeSets struct {
	key func(string) attribute.KeyValue // nil: none

	mu   sync.RWMutex
	made map[labels]attributeSet
}

func newAttributeSets(key func(string) attribute.KeyValue) *attributeSets {
	return &attributeSets{key: key, made: map[labels]attributeSet{}}
}

// of returns the set of l and, unless key is "", of WithKey's attribute for the key.
func (s *attributeSets) of(l labels, key string) attributeSet {
	if s.key != nil && key != "" {
		if kv := s.key(key); kv.Valid() {
			return newAttributeSet(append(l.attributes(), kv))
		}
	}
	s.mu.RLock()
	set, ok := s.made[l]
	s.mu.RUnlock()
	if !ok {
		set = newAttributeSet(l.attributes())
		s.mu.Lock()
		s.made[l] = set
		s.mu.Unlock()
	}
	return set
}

// serverAttributes describe the server at an address, as a node's Addr has it. An address that is
// not a host and a port is a path, a name such as "sentinel-managed master", or has a number behind
// it that tells nodes with one address apart.
func serverAttributes(addr string) []attribute.KeyValue {
	host, port, err := net.SplitHostPort(addr)
	if number, portErr := strconv.ParseUint(port, 10, 16); err == nil && portErr == nil && !strings.Contains(host, " ") {
		return []attribute.KeyValue{semconv.ServerAddress(host), semconv.ServerPort(int(number))}
	}
	return []attribute.KeyValue{semconv.ServerAddress(addr)}
}

// quarantinedAddr returns the server's address. Only a Cluster's differs from the node's Addr by more
// than the number that tells nodes apart.
func quarantinedAddr(q redlock.Quarantine) string {
	if strings.HasPrefix(q.Addr, q.Server) {
		return q.Addr
	}
	return q.Server
}
