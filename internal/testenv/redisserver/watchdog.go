//go:build unix

package redisserver

import (
	"io"
	"os/exec"
	"strconv"
)

// watchdog kills pid when this process ends, however it ends. release cancels that. Until then
// pid must not be reused by another process.
func watchdog(pid int) (release func(), err error) {
	_, release, err = startWatchdog(pid)
	return release, err
}

// startWatchdog starts a shell that kills pid when alive is closed. Only this process holds
// that end of the pipe.
func startWatchdog(pid int) (alive io.Closer, release func(), err error) {
	cmd := exec.Command("/bin/sh", "-c", `cat >/dev/null; kill -9 "$1"`, "sh", strconv.Itoa(pid))
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	return pipe, func() {
		_ = cmd.Process.Kill() // the shell first: its cat ends with the pipe
		_ = cmd.Wait()
		_ = pipe.Close()
	}, nil
}
