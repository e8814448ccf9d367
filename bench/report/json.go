package report

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/quorumlock/redlock/bench/result"
)

// numbersList matches an indented list of numbers.
var numbersList = regexp.MustCompile(`\[\n[-0-9.,\s]+\]`)

// indented returns the run as JSON with one field on each line, and a list of numbers on a
// single line: nobody reads the hundred percentiles of each sample.
func indented(run result.Run) ([]byte, error) {
	raw, err := json.MarshalIndent(run, "", " ")
	if err != nil {
		return nil, err
	}
	raw = numbersList.ReplaceAllFunc(raw, func(list []byte) []byte {
		return []byte(strings.Join(strings.Fields(string(list)), ""))
	})
	return append(raw, '\n'), nil
}
