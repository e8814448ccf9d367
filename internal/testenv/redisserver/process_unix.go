//go:build unix && !linux

package redisserver

import (
	"os/exec"
	"strconv"
	"strings"
)

// dieWithParent does nothing: these kernels lack the feature, so guard is used.
func dieWithParent(*exec.Cmd) {}

func guard(pid int) (release func(), err error) { return watchdog(pid) }

func suspended(pid int) (bool, error) {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return strings.HasPrefix(strings.TrimSpace(string(out)), "T"), err
}
