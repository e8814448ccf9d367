package redlock

import (
	_ "embed"
	"strings"
)

// script is a Lua script by its text and by the hash under which servers cache
// it. The hashes are constants, checked by a test: computing SHA-1 at run time
// panics in builds that enforce FIPS 140 (redsync#194).
type script struct{ text, sha1 string }

var (
	//go:embed release.lua
	releaseText string
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

	releaseScript = script{including(wakeText, releaseText), "91e7312bcfb24dad45f187e1b4bf910ba9d890ed"}
	extendScript  = script{extendText, "22ebce26583337b64440cd243a9477be2427ba10"}
	proposeScript = script{proposeText, "a165f6136459a09773412d0ba592a3bcb9933ef1"}
	queueScript   = script{including(wakeText, queueText), "cf1365f889f7165078f2098569772f5c6d4c616b"}
	inspectScript = script{inspectText, "52c5ee0a5ea87037e12cff07e977582efdb666f0"}
)

// including puts wake.lua where a script asks for it: scripts cannot call each other.
func including(wake, text string) string {
	return strings.Replace(text, "--include wake.lua\n", wake, 1)
}
