//go:build !unix

package redisserver

import (
	"errors"
	"os"
	"os/exec"
)

func dieWithParent(*exec.Cmd) {}

func guard(int) (release func(), err error) { return func() {}, nil }

func suspend(*os.Process) error { return errors.ErrUnsupported }

func proceed(*os.Process) error { return errors.ErrUnsupported }

func suspended(int) (bool, error) { return false, errors.ErrUnsupported }
