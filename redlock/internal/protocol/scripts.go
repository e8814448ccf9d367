package protocol

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
	ReleaseScript = Script{including(wakeText, releaseText), "9899c63d9989a7ee4bbfb878a4d565700edecd24"}
	ForceScript   = Script{including(wakeText, forceText), "4c670ad4f57c6b6a4238970df11b72b91f1f793d"}
	ExtendScript  = Script{extendText, "bf394bd12c9869874634467b2ced988c58c54590"}
	ProposeScript = Script{proposeText, "6712bb086e1a7bad49490b9aeaeb43da45c92c62"}
	QueueScript   = Script{including(wakeText, queueText), "acca409070ab5d18d4d950b7f15e6128aff04131"}
	InspectScript = Script{inspectText, "0d834024106f32c76da0768d1cbb096c176e547d"}
)

// including inserts wake.lua where a script includes it, as scripts cannot call each other.
func including(wake, text string) string {
	return strings.Replace(text, "--include wake.lua\n", wake, 1)
}
