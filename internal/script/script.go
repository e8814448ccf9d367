// Package script has the Lua scripts that run on the nodes.
package script

import (
	_ "embed"
	"strings"
)

// Script is a Lua script: its text, and the hash under which servers cache it. The hashes are
// constants, checked by a test: computing SHA-1 at run time panics in builds that enforce FIPS
// 140 (redsync#194).
type Script struct{ Text, SHA1 string }

var (
	//go:embed release.lua
	releaseText string
	//go:embed force.lua
	forceText string
	//go:embed extend.lua
	extendText string
	//go:embed propose.lua
	proposeText string
	//go:embed queue.lua
	queueText string
	//go:embed inspect.lua
	inspectText string
	//go:embed wake.lua
	wakeText string
)

// The scripts. Each file describes its arguments and its reply.
var (
	Release = Script{including(wakeText, releaseText), "b4ff3d38bab1162b96024c25f14a0d4021c7bccd"}
	Force   = Script{including(wakeText, forceText), "70ac01f590173ed2d37a944793b5bd8ceab479ae"}
	Extend  = Script{extendText, "a298951b21bd8fb300a60e7e68d7ea417672a3f1"}
	Propose = Script{proposeText, "39a9232a1ea5619ac4a28e52dafc08d13099d806"}
	Queue   = Script{including(wakeText, queueText), "165fe391aeecebf924f25bbc654e15d8abfb35d8"}
	Inspect = Script{inspectText, "e8712ffe2f58848fa24c8445d68cec2a32df377e"}
)

// including inserts wake.lua where a script includes it, as scripts cannot call each other.
func including(wake, text string) string {
	return strings.Replace(text, "--include wake.lua\n", wake, 1)
}
