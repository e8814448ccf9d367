package masterlist

import "strings"

// URLs is the value of --nodes. Set accepts every list: an error of a flag's value quotes that
// value, and this one holds passwords. redlock.Open reports what is wrong with a URL, and never
// quotes it. For the same reason String returns nothing.
type URLs []string

// Set adds the URLs of a list. It ignores a comma at the end. It keeps any other empty URL, which
// is a mistake, such as a variable that is not set.
func (n *URLs) Set(list string) error {
	list = strings.TrimSuffix(strings.TrimSpace(list), ",")
	for u := range strings.SplitSeq(list, ",") {
		*n = append(*n, strings.TrimSpace(u))
	}
	return nil
}

func (n *URLs) String() string { return "" }
func (n *URLs) Type() string   { return "url,..." }
