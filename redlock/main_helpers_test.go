package redlock_test

import (
	"context"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

const key, ttl = virtual.Key, virtual.TTL

var ctx = context.Background()

func TestMain(m *testing.M) { goleak.VerifyTestMain(withExamples{m}) }

// withExamples starts the masters that the examples run on.
type withExamples struct{ tests *testing.M }

func (m withExamples) Run() int {
	five, err := redlocktest.New(5)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	masters = five.URLs()
	defer func() { _ = five.Close() }()
	return m.tests.Run()
}
