package report

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/quorumlock/redlock/bench/result"
)

// numbersList is an indented list of numbers.
var numbersList = regexp.MustCompile(`\[\n[-0-9.,\s]+\]`)

// indented is the run as JSON, one field a line, but a list of numbers on a single one:
// the hundred percentiles of each sample are no reading matter.
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
