package sim

import "slices"

// lockOuts lists the answers of a server to a client whose password or rights were changed
// before the client knows of it. NOPERM is not among them: when a node answers it to a
// script, clients do not queue there for a minute, and send commands that the rules do not
// judge.
var lockOuts = []string{
	"WRONGPASS invalid username-password pair or user is disabled.",
	"NOAUTH Authentication required.",
}

// drawLockOut adds the kind to every fourth run.
func (p *Plan) drawLockOut() {
	if stream(p.Config.Seed, "lock-out").IntN(4) == 0 {
		p.Kinds = append(p.Kinds, LockOut)
		slices.Sort(p.Kinds)
	}
}
