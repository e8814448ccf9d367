package main

// breaking are bugs of what happens to a lock that ForceRelease breaks. The simulation has
// no operator who does.
var breaking = []mutant{
	shownBy("TestForceReleaseTellsTheHolder", bug{"break-not-told", "a node that deletes a lock by force says nothing to its holder", one("redlock/internal/protocol/force.lua",
		"  redis.pcall(publish, 'redlock:wake:' .. ARGV[2], ARGV[3])\n", "")}),
	shownBy("TestAForgedMessageDoesNotEndALock", bug{"message-ends-lock", "a message that a lock was broken ends it, and no node is asked", one(notices,
		"		l.hasten()\n	}\n}\n\n// asks", "		l.lose(ErrNotHeld)\n	}\n}\n\n// asks")}),
	shownBy("TestForceReleaseTellsTheHolderWhenAMajorityHasDeleted", bug{"first-message-renews", "a lock is renewed at the first message that it was broken, ahead of the deletions on other nodes", one(notices,
		"	if n.sum <= nodes-quorum.Size(nodes) {", "	if false && n.sum <= nodes-quorum.Size(nodes) {")}),
	shownBy("TestForceReleaseTellsTheHolderDuringARenewal", bug{"message-in-renewal-lost", "a message that comes during a renewal is forgotten with it", one(renew,
		"		l.r.scheduler.RenewAt(l, round.Start().Add(ttl/renewals))\n		l.hasten()\n", "		l.r.scheduler.RenewAt(l, round.Start().Add(ttl/renewals))\n")}),
	shownBy("TestAFloodOfMessagesIsBounded", bug{"flood-of-renewals", "messages can have a lock renewed without a pause", one(notices,
		"	if due.Before(n.next) {\n", "	if false {\n")}),
	shownBy("TestRenewFindsTheLossWhileAMinorityIsDown", bug{"down-hides-loss", "an extension is decided before the refusals that show that the lock is lost", one(lifecycle,
		"		Sure:    true,\n", "")}),
}
