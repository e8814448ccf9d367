package site

import (
	"context"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// simulation is in the place of the module: its bytes, with much to compress.
var simulation = make([]byte, 100_000)

func compiled(context.Context) ([]byte, error) { return simulation, nil }
