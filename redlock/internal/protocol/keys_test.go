package protocol

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/slot"
)

// No client's lock is stored under a name under which another client's nodes keep an
// identity record, a fence, a queue or its flag, whatever both clients' prefixes are.
func TestKeysDoNotMeetThoseOfAnotherClient(t *testing.T) {
	prefixes := []string{
		"", "r", "redlock", "redlock:", "redlock:fence:", "redlock:fence:{", "redlock:fence::", "redlock:queue", "redlock:queue:",
		"redlock:queued:", "redlock:guard:", "redlock:server", "redlock:server:", "{t}", "a:", "redlock:redlock:", "red",
	}
	keys := []string{
		"server", "redlock:server", "edlock:server", ":server", "lock:server", "a:redlock:server", "{t}redlock:server",
		"redlock:serverredlock:server", "fence:{a}", "{a}", "a", "a}", "d:{a}", ":{a}", ":{t}redlock:server", "x}redlock:server",
		"redlock:fence:{a}", "redlock:queue:{a}", "redlock:queued:{a}", "redlock:guard:{a}", "guard:{a}", "lock:fence:{a}",
	}
	type client struct{ prefix, key string }
	kept := map[string]string{} // the purpose of each name
	keep := func(name, what string) {
		before := kept[name]
		require.True(t, before == "" || before == what, "%q is both %s and %s", name, before, what)
		kept[name] = what
	}
	var accepted []client
	for _, p := range prefixes {
		keep(p+RecordKey, "an identity record")
		for _, k := range keys {
			if !Reserved(p + k) {
				accepted = append(accepted, client{p, k})
				keep(slot.Sibling(slot.FencePrefix, p+k), "a fence")
				keep(slot.Sibling(slot.QueuePrefix, p+k), "a queue")
				keep(slot.Sibling(slot.FlagPrefix, p+k), "a queue's flag")
			}
			keep(slot.Sibling("redlock:guard:", k), "a token of fence.RedisGuard")
		}
	}
	require.Greater(t, len(accepted), len(prefixes)*len(keys)/4, "not all names are reserved")
	for _, c := range accepted {
		assert.Empty(t, kept[c.prefix+c.key], "prefix %q, key %q", c.prefix, c.key)
	}
	for _, fine := range []client{{"redlock:", "job"}, {"", "redlock:job"}, {"", "server"}, {"", "redlock:server:1"}, {"p:", "redlock:fence:{a}"}} {
		assert.False(t, Reserved(fine.prefix+fine.key))
	}
}
