// Package serverinfo reads the reply to INFO.
package serverinfo

import "strings"

// Fields returns the fields of a reply to INFO by name. Lines without a colon are left out.
func Fields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}
