package slot

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
)
