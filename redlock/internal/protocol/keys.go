package protocol

import (
	"strings"

	"github.com/quorumlock/redlock/internal/slot"
)

// RecordKey, after Config.KeyPrefix, is the key of a node's identity record. See package voter.
const RecordKey = "redlock:server"

// HealthKey, after Config.KeyPrefix, is a key that never exists; see Health.
const HealthKey = "redlock:health"

// Reserved reports whether a lock's key on the nodes could be a key that a client keeps for
// another purpose, whatever that client's Config.KeyPrefix is. The keys of fences, queues,
// flags and guards' tokens begin with a prefix of their own. The key of an identity record
// begins with a client's KeyPrefix, which can be any text. So any key that ends in RecordKey
// may be the record of a client whose KeyPrefix is the rest. The same holds for HealthKey.
func Reserved(nodeKey string) bool {
	for _, prefix := range [...]string{slot.FencePrefix, slot.QueuePrefix, slot.FlagPrefix, slot.GuardPrefix} {
		if strings.HasPrefix(nodeKey, prefix) {
			return true
		}
	}
	return strings.HasSuffix(nodeKey, RecordKey) || strings.HasSuffix(nodeKey, HealthKey)
}

// Queue holds the names under which each node keeps the waiters for a key. The names are in
// interfaces, so that they are allocated once and not for each node.
type Queue struct {
	Key  any // string: a sorted set, in the slot of the lock's key
	Flag any // string: a key that exists while the queue has entries
}

// QueueOf returns the queue of a lock's key on the nodes.
func QueueOf(nodeKey string) *Queue {
	return &Queue{Key: slot.Sibling(slot.QueuePrefix, nodeKey), Flag: slot.Sibling(slot.FlagPrefix, nodeKey)}
}

// FlagOf returns the queue without its key. A release needs no more if the client did not wait.
func FlagOf(nodeKey string) *Queue { return &Queue{Flag: slot.Sibling(slot.FlagPrefix, nodeKey)} }

// FenceKey returns the key of a lock's fence.
func FenceKey(nodeKey string) string { return slot.Sibling(slot.FencePrefix, nodeKey) }

// ShardChannel returns the channel, without slot.WakePrefix, on which a Cluster sends the client id
// messages about a key. The channel is in the key's slot.
func ShardChannel(id, nodeKey string) string { return "{" + slot.Tag(nodeKey) + "}" + id }
