package errs_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
)

const key, ttl = virtual.Key, virtual.TTL

var ctx = context.Background()

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
