// Package labpage has tests of the page of redlock-lab serve, in a browser. It has no code: it is a
// module of its own to keep the browser's driver out of go.mod.
package labpage
