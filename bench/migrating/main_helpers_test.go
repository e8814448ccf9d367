// Package migrating_test proves what docs/migrating.md says: which other libraries exclude this one
// on the same masters, what each sends to them, and that redsync's own test programs work when
// ported. The tests of redsync, redislock and rueidislock run those libraries. Those of Redisson and
// node-redlock send the commands that these libraries send. Tests on real masters run in real time
// and assert no duration; expiry is tested in virtual time.
package migrating_test

import (
	"testing"

	"github.com/quorumlock/redlock/bench/subject"
)

func TestMain(m *testing.M) {
	subject.Quiet()
	m.Run()
}
