package masterlist

import "strings"

// URLs is the value of --nodes. It takes whatever it is given: an error of
// a flag's value quotes that value, and this one holds passwords. What is wrong
// with a URL is for redlock.Open to say, which never quotes it. For the same
// reason it does not print itself.
type URLs []string

// A comma at the end of a list is nothing. Any other that has no URL before it is a mistake,
// such as a variable that is not set.
func (n *URLs) Set(list string) error {
	list = strings.TrimSuffix(strings.TrimSpace(list), ",")
	for u := range strings.SplitSeq(list, ",") {
		*n = append(*n, strings.TrimSpace(u))
	}
	return nil
}

func (n *URLs) String() string { return "" }
func (n *URLs) Type() string   { return "url,..." }
