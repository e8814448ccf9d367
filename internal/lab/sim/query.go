package sim

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/lab/scenario"
)

// ParseQuery reads the query of a web address: that of a seed, as [Config.Query] writes it, or that of a
// scenario.
func ParseQuery(query string) (Config, *scenario.Scenario, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return Config{}, nil, fmt.Errorf("the query is not written as in a web address: %w", err)
	}
	if !values.Has("sim") {
		s, err := scenario.Parse(query)
		return Config{}, &s, err
	}
	c, err := parseConfig(values)
	return c, nil, err
}

// Query returns the config as the query of a web address.
func (c Config) Query() string {
	q := []string{fmt.Sprintf("sim=%d", c.Seed)}
	add := func(name, value string) {
		if value != "" {
			q = append(q, name+"="+value)
		}
	}
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	add("nodes", number(c.Nodes))
	add("clients", number(c.Clients))
	if c.For > 0 {
		add("for", c.For.String())
	}
	if c.Faults != nil {
		list := names(c.Faults)
		if list == "" {
			list = "none"
		}
		add("faults", list)
	}
	for _, s := range []struct {
		name string
		of   Switch
	}{{"fencing", c.Fencing}, {"guard", c.Guard}, {"fair", c.Fair}, {"ways", c.Ways}} {
		add(s.name, [...]string{Drawn: "", On: "on", Off: "off"}[s.of])
	}
	without := make([]string, len(c.Without))
	for i, n := range c.Without {
		without[i] = strconv.Itoa(n)
	}
	add("without", strings.Join(without, ","))
	return strings.Join(q, "&")
}

// parseConfig reads what Query has written. The error names the field that is wrong.
func parseConfig(values url.Values) (c Config, err error) {
	fields := map[string]func(string) error{
		"sim":     func(s string) (err error) { c.Seed, err = strconv.ParseUint(s, 10, 64); return err },
		"nodes":   func(s string) (err error) { c.Nodes, err = strconv.Atoi(s); return err },
		"clients": func(s string) (err error) { c.Clients, err = strconv.Atoi(s); return err },
		"for":     func(s string) (err error) { c.For, err = time.ParseDuration(s); return err },
		"faults":  func(s string) (err error) { c.Faults, err = ParseKinds(s); return err },
		"without": func(s string) error {
			for number := range strings.SplitSeq(s, ",") {
				n, err := strconv.Atoi(number)
				if err != nil {
					return err
				}
				c.Without = append(c.Without, n)
			}
			return nil
		},
		"fencing": c.Fencing.set, "guard": c.Guard.set, "fair": c.Fair.set, "ways": c.Ways.set,
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		set, known := fields[name]
		switch value := values[name]; {
		case !known:
			return c, fmt.Errorf("%s is no field of a seed's run", name)
		case len(value) > 1:
			return c, fmt.Errorf("%s is given %d times, want it once", name, len(value))
		default:
			if err := set(value[0]); err != nil {
				return c, fmt.Errorf("%s is %q: %w", name, value[0], err)
			}
		}
	}
	_, err = Draw(c)
	return c, err
}

// set reads a switch.
func (s *Switch) set(value string) error {
	switch value {
	case "on":
		*s = On
	case "off":
		*s = Off
	default:
		return fmt.Errorf("want on or off")
	}
	return nil
}
