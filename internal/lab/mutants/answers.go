package main

// answering are bugs in the answers that a caller gets, or in how answers are understood. A
// test in virtual time shows each.
var answering = []mutant{
	shownBy("TestAcquireWithoutAQuorumDoesNotMatchARefusal", bug{"refusal-matches-held", "an error for a missing quorum also matches ErrHeld if one node refused", one(errs,
		"		if n.Vote != quorum.Refused {\n", "		if true {\n")}),
	shownBy("TestReleaseWhoseRepliesWereLostIsNotALoss", bug{"repetition-is-refused", "a repeated release, whose first reply was lost, reports a loss", one(round,
		"	case v == Refused:\n		v, err = Failed, c.err\n", "")}),
	shownBy("TestReleaseIsRepeatedOnNewConnectionsBeforeItFails", bug{"release-not-repeated-first", "a release fails at the first connection that breaks", one(call,
		"	case !r.kept():\n		r.count(c, Failed, 0, err)\n", "	case true:\n		r.count(c, Failed, 0, err)\n")}),
	shownBy("TestAcquireCancelledInALaterAttemptHasTheReasonOfTheLastComplete", bug{"cut-short-hides-reason", "an attempt that is cut short hides the result of the attempt before", one(acquire,
		"			case now.Cause != nil && now.Reason == nil && failed.Reason != nil:", "			case false:")}),
	shownBy("TestAcquireLeavesNothingWhereItWasGranted", bug{"last-clean-up-not-awaited", "a wait that ends returns before the clean-up of its last attempt is done", one(acquire,
		"cmp.Or(tried.cleaned, left.cleaned)", "tried.cleaned")}),
	shownBy("TestDuplicateCountsOnceInARound", bug{"server-counts-twice", "a server that has moved to another node counts for both in one round", one(round,
		"	case v == Granted && r.granted(c.voter):", "	case false && r.granted(c.voter):")}),
	shownBy("TestIdentityRecordIsWrittenAgainWhenLost", bug{"lost-record-stays-lost", "the date of a takeover is not written again when its first write was lost", one(marker,
		"	case !s.changed.IsZero():\n", "	case s.changed.Equal(s.heard):\n")}),
}
