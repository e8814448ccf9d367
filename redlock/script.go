package redlock

import _ "embed"

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

	releaseScript = script{releaseText, "304c5304751be58e18bb99b17ebb984d937235a7"}
	extendScript  = script{extendText, "22ebce26583337b64440cd243a9477be2427ba10"}
	proposeScript = script{proposeText, "a165f6136459a09773412d0ba592a3bcb9933ef1"}
)
