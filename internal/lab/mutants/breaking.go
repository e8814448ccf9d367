package main

// breaking are bugs in ForceRelease. The simulation has no operator who uses it.
var breaking = []mutant{
	shownBy("TestForceReleaseNotifiesTheHolder", bug{"break-not-told", "a node that deletes a lock by force does not notify the holder", one("redlock/internal/protocol/force.lua",
		"  redis.pcall(publish, 'redlock:wake:' .. ARGV[2], ARGV[3])\n", "")}),
	shownBy("TestKeepAliveSurvivesAForgedMessage", bug{"message-ends-lock", "a message that a lock was broken ends it without asking the nodes", one(notices,
		"		l.hasten()\n	}\n}\n\n// renewing", "		l.lose(ErrNotHeld)\n	}\n}\n\n// renewing")}),
	shownBy("TestForceReleaseNotifiesTheHolderWhenAMajorityHasDeleted", bug{"first-message-renews", "a lock is renewed at the first message that it was broken, before other nodes delete it", one(notices,
		"	if f.sum <= nodes-quorum.Size(nodes) {", "	if false && f.sum <= nodes-quorum.Size(nodes) {")}),
	shownBy("TestForceReleaseNotifiesTheHolderDuringARenewal", bug{"message-in-renewal-lost", "a message that arrives during a renewal is forgotten", one(renew,
		"		l.r.scheduler.RenewAt(l, round.Start().Add(ttl/renewals))\n		l.hasten()\n", "		l.r.scheduler.RenewAt(l, round.Start().Add(ttl/renewals))\n")}),
	shownBy("TestKeepAliveRenewsInBoundsUnderAFloodOfMessages", bug{"flood-of-renewals", "messages cause renewals without a pause in between", one(notices,
		"	if due.Before(f.next) {\n", "	if false {\n")}),
	shownBy("TestKeepAliveFindsTheLossWhileAMinorityIsDown", bug{"down-hides-loss", "an extension is decided before the refusals that show the loss of the lock", one(lifecycle,
		"		Sure:    true,\n", "")}),
}
