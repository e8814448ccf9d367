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
	//go:embed retain.lua
	retainText string
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
	Release = Script{including(wakeText, releaseText), "2fe771f80b1fedd4c607dbc96e6c9e95a03b89cb"}
	Retain  = Script{including(wakeText, retainText), "5c98e340a585d74debf122cdbd7efd3a2a43ce9d"}
	Force   = Script{including(wakeText, forceText), "72d55db054071214685837a47c315626df82cd04"}
	Extend  = Script{extendText, "a298951b21bd8fb300a60e7e68d7ea417672a3f1"}
	Propose = Script{proposeText, "39a9232a1ea5619ac4a28e52dafc08d13099d806"}
	Queue   = Script{including(wakeText, queueText), "ff3c960a050b645cc218e9265463e6d2b2a8d351"}
	Inspect = Script{inspectText, "e8712ffe2f58848fa24c8445d68cec2a32df377e"}
)

// including inserts wake.lua where a script includes it, as scripts cannot call each other.
func including(wake, text string) string {
	return strings.Replace(text, "--include wake.lua\n", wake, 1)
}
