package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestOperations(t *testing.T) {
	for line, want := range map[string]order{
		"SET k v NX PX 100":     {verb: "acquire", key: "k", value: "v"},
		"EVALSHA sha 1 k v":     {verb: "release", key: "k", value: "v"},
		"EVAL script 1 k v 100": {verb: "extend", key: "k", value: "v"},
		"EVALSHA sha 2 k redlock:fence:{k} v 100 1700 604800 0": {verb: "acquire", key: "k", value: "v", fence: "redlock:fence:{k}", token: 1700},
		"EVALSHA sha 2 k redlock:fence:{k} v 100 1700 604800 1": {verb: "acquire", key: "k", value: "v", fence: "redlock:fence:{k}", token: 1700, again: true},
		"EVALSHA sha 2 k redlock:fence:{k} v 100 1700 604800":   {verb: "extend", key: "k", value: "v", fence: "redlock:fence:{k}", token: 1700},
		"INFO server": {},
		"HELLO 3":     {},
	} {
		assert.Equal(t, want, operation(strings.Fields(line)), line)
	}
}

func TestReplies(t *testing.T) {
	plain, fenced := order{verb: "acquire"}, order{verb: "acquire", fence: "f"}
	for _, c := range []struct {
		to    order
		reply string
		want  string
	}{
		{plain, "+OK", "granted"},
		{plain, "_", "refused"},
		{plain, "$-1", "refused"},
		{plain, "-LOADING later", "failed: LOADING later"},
		{fenced, ":1", "granted"},
		{fenced, ":1700", "refused: fence 1700"},
		{fenced, ":-1700", "refused"},
		{fenced, ":0", "refused"},
		{order{verb: "release"}, ":1", "granted"},
		{order{verb: "release"}, ":0", "refused"},
		{order{verb: "release"}, ":-30", "refused: 30ms left"},
		{order{verb: "extend", fence: "f"}, ":0", "refused"},
	} {
		assert.Equal(t, c.want, c.to.said([]byte(c.reply+"\r\n")), c.reply)
	}
}

// A node's fence does not go down, and lets nothing pass that is not above it.
func TestFences(t *testing.T) {
	mine := stored{"v", time.Hour}
	take := order{verb: "acquire", key: "k", value: "v", fence: "f", token: 7}
	back, extend := take, take
	back.again, extend.verb = true, "extend"
	for name, c := range map[string]struct {
		o      order
		word   string
		before stored
		last   int64
		fence  string
		broken string
	}{
		"granted above it":            {take, "granted", stored{}, 6, "7", ""},
		"granted at it":               {take, "granted", stored{}, 7, "7", "not above"},
		"granted at it, by its owner": {take, "granted", mine, 7, "7", ""},
		"granted below it":            {take, "granted", stored{}, 8, "8", "not above"},
		"granted below it, its owner": {take, "granted", mine, 8, "8", "not above"},
		"not raised":                  {take, "granted", stored{}, 6, "6", "did not raise"},
		"not kept":                    {take, "granted", stored{}, 6, "", "lowered"},
		"lowered":                     {take, "granted", stored{}, 8, "7", "lowered"},
		"lowered by a refusal":        {take, "refused", stored{}, 8, "7", "lowered"},
		"refused":                     {take, "refused", stored{}, 8, "8", ""},
		"put back below":              {back, "granted", stored{}, 8, "8", ""},
		"put back where all was lost": {back, "granted", stored{}, 0, "7", ""},
		"extended":                    {extend, "granted", mine, 8, "8", ""},
		"extended, and not put back":  {extend, "granted", mine, 0, "", "did not raise"},
		"written as Lua writes it":    {take, "granted", stored{}, 6, "1.7e+15", "no token"},
	} {
		w := &world{fences: map[storage]int64{{0, "f"}: c.last}, proposed: map[proposal]bool{}}
		wrong := w.fenced(c.o, c.word, 0, c.before, c.fence, 0)
		if c.broken == "" {
			assert.Empty(t, wrong, name)
		} else {
			assert.Contains(t, wrong, c.broken, name)
		}
	}
	w := &world{fences: map[storage]int64{}, proposed: map[proposal]bool{}, extended: map[string]bool{}}
	assert.Empty(t, w.fenced(take, "granted", 0, stored{}, "7", 0))
	assert.Empty(t, w.fenced(take, "granted", 1, stored{}, "7", 0))
	assert.Equal(t, "was sent again", w.fenced(take, "granted", 0, mine, "7", 0))
}
