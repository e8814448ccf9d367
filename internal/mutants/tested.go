package main

// tested are bugs for which the simulation has no rule. A test shows each.
var tested = []mutant{
	shownBy("TestValidIsNeverLate", bug{"valid-without-clock", "Valid does not check the clock itself", one(locks,
		"	l.endIfOver(l.r.cfg.Clock.Now())\n	return l.cause == nil\n", "	return l.cause == nil\n")}),
	shownBy("TestDoEndsFnsContextWithTheLock", bug{"do-context-goes-on", "the end of a lock does not end the context in Do", one(lifecycle,
		"	if l.cancelDo != nil {\n		l.cancelDo(cause)\n	}\n", "")}),
	shownBy("TestFromContextFindsNoLockFromUntilOn", bug{"context-has-dead-lock", "FromContext returns a lock whose validity is over", one("redlock/fromcontext.go",
		"l == nil || !l.Valid()", "l == nil")}),
	shownBy("TestNoKeyMeetsWhatAnotherClientKeeps", bug{"prefix-meets-record", "a key with a KeyPrefix may equal another client's identity record", one("redlock/internal/protocol/keys.go",
		"strings.HasSuffix(nodeKey, RecordKey)", "nodeKey == RecordKey")}),
	shownBy("TestCallbacksGoOnAfterAGoexit", bug{"goexit-silences", "after a callback that ends its goroutine, no callback is called again", one("redlock/internal/asynclog/asynclog.go",
		"	exited := true\n", "	exited := false\n")}),
	shownBy("TestAcquireForgetsADuplicateWhoseOtherNodeIsDead", bug{"duplicate-of-the-dead", "a server that moved from a dead node stays a duplicate of that node", one("redlock/internal/voter/duplicate.go",
		"|| o.disconnected ||", "||")}),
	shownBy("TestAcquireAfterALongRestFindsItsMajority", bug{"rested-not-greeted", "a connection that was idle for long is assumed to be alive", one("redlock/internal/conn/greet.go",
		"	if p.doubtful {\n", "	if false {\n")}),
	shownBy("TestAcquireWithTheLargestGuard", bug{"guard-overflows", "the largest RestartGuard overflows with its drift margin and quarantines no server", one(guards,
		"clock.Sum(g.period, g.drift.Of(g.period))", "g.period+g.drift.Of(g.period)")}),
	shownBy("TestGuardRemembersAnAddressThatLeftForAQuarantine", bug{"left-address-forgotten", "an address that left a Cluster is forgotten while locks granted there may be valid", one("redlock/internal/voter/forget.go",
		"s.gone.Add(granularity).Add(g.span())", "s.gone.Add(granularity)")}),
	shownBy("TestGuardForgetsNoServerThatHasADuplicate", bug{"duplicate-of-the-forgotten", "a server is forgotten while another node has a duplicate of it", one("redlock/internal/voter/forget.go",
		" || g.hasDuplicate(s):", ":")}),
	shownBy("TestAcquireForgetsTheAddressesThatMastersLeft", bug{"left-masters-kept", "connections to masters that left a Cluster are never closed", one("redlock/internal/conn/cluster.go",
		"			c.forget(ctx, parts)\n", "")}),
}
