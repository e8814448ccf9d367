package protocol

import (
	"strings"

	"github.com/quorumlock/redlock/internal/slot"
)

// The prefixes of the names that this library uses beside a lock's key. FencePrefix,
// QueuePrefix and FlagPrefix name keys in the slot of the lock's key. WakePrefix names
// channels.
const (
	FencePrefix = "redlock:fence:"
	QueuePrefix = "redlock:queue:"
	FlagPrefix  = "redlock:queued:"
	WakePrefix  = "redlock:wake:"

	// GuardPrefix names the keys under which package fence keeps tokens. Their Redis may be one
	// of the nodes.
	GuardPrefix = "redlock:guard:"

	// RecordKey, after Config.KeyPrefix, is the key of a node's identity record. See package
	// voter.
	RecordKey = "redlock:server"
)

// Reserved reports whether a lock's key on the nodes could be a key that a client keeps for
// another purpose, whatever that client's Config.KeyPrefix is. The keys of fences, queues,
// flags and guards' tokens begin with a prefix of their own. The key of an identity record
// begins with a client's KeyPrefix, which can be any text. So any key that ends in RecordKey
// may be the record of a client whose KeyPrefix is the rest.
func Reserved(nodeKey string) bool {
	for _, prefix := range [...]string{FencePrefix, QueuePrefix, FlagPrefix, GuardPrefix} {
		if strings.HasPrefix(nodeKey, prefix) {
			return true
		}
	}
	return strings.HasSuffix(nodeKey, RecordKey)
}

// Queue holds the names under which each node keeps the waiters for a key. The names are in
// interfaces, so that they are allocated once and not for each node.
type Queue struct {
	Key  any // string: a sorted set, in the slot of the lock's key
	Flag any // string: a key that exists while the queue has entries
}

// QueueOf returns the queue of a lock's key on the nodes.
func QueueOf(nodeKey string) *Queue {
	return &Queue{Key: slot.Sibling(QueuePrefix, nodeKey), Flag: slot.Sibling(FlagPrefix, nodeKey)}
}

// FlagOf returns the queue without its key. A release needs no more if the client did not wait.
func FlagOf(nodeKey string) *Queue { return &Queue{Flag: slot.Sibling(FlagPrefix, nodeKey)} }

// FenceKey returns the key of a lock's fence.
func FenceKey(nodeKey string) string { return slot.Sibling(FencePrefix, nodeKey) }

// ShardChannel returns the channel, without WakePrefix, on which a Cluster sends the client id
// messages about a key. The channel is in the key's slot.
func ShardChannel(id, nodeKey string) string { return "{" + slot.Tag(nodeKey) + "}" + id }
