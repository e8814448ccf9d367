//go:build unix

package sqltest

import "syscall"

// credential returns the user to run servers as, or nil if we are not root.
func credential() *syscall.Credential {
	uid, gid, ok := servant()
	if !ok {
		return nil
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}
