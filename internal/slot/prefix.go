package slot

// What this library keeps beside a lock's key begins with one of these.
const (
	FencePrefix = "redlock:fence:"
	QueuePrefix = "redlock:queue:"
	FlagPrefix  = "redlock:queued:"
	WakePrefix  = "redlock:wake:" // of channels

	// GuardPrefix is under which package fence keeps tokens, of keys of a Redis that may be
	// one of the nodes.
	GuardPrefix = "redlock:guard:"
)
