package site

import (
	"os/exec"
	"runtime"
)

// openers are the commands that open an address in the user's browser, by operating system.
var openers = map[string][]string{
	"darwin":  {"open"},
	"windows": {"rundll32", "url.dll,FileProtocolHandler"},
}

// openBrowser opens an address in the user's browser. It does not wait for the browser.
func openBrowser(address string) error {
	command := openers[runtime.GOOS]
	if command == nil {
		command = []string{"xdg-open"}
	}
	cmd := exec.Command(command[0], append(command[1:len(command):len(command)], address)...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	return nil
}
