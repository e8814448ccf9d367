package main

// lockedOut are bugs in the handling of nodes that refuse commands because of a password or a
// right.
var lockedOut = []bug{
	{"refused-release-dropped", "a release that a node refuses for a password or a right is not repeated", one(answerGo,
		`return errs.Says(err, "WRONGTYPE") || errs.Says(err, "ERR unknown command")`,
		`return errs.Says(err, "WRONGTYPE") || errs.Says(err, "ERR unknown command") || errs.Says(err, "WRONGPASS") || errs.Says(err, "NOAUTH") || errs.Says(err, "NOPERM")`)},
}
