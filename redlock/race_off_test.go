//go:build !race

package redlock_test

import "testing"

func crowded(*testing.T) {}
