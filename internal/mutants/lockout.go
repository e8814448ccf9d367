package main

// lockedOut are bugs in the handling of nodes that refuse commands because of a password or a
// right.
var lockedOut = []bug{
	{"refused-release-dropped", "a release that a node refuses for a password or a right is not repeated", one(command,
		`return says(err, "WRONGTYPE") || says(err, "ERR unknown command")`,
		`return says(err, "WRONGTYPE") || says(err, "ERR unknown command") || says(err, "WRONGPASS") || says(err, "NOAUTH") || says(err, "NOPERM")`)},
}
