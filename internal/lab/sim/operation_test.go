package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestOperations(t *testing.T) {
	for line, want := range map[string]order{
		"SET k v NX PX 100":                                             {verb: "acquire", key: "k", value: "v"},
		"EVALSHA sha 2 k redlock:queued:{k} v":                          {verb: "release", key: "k", value: "v", queue: "redlock:queue:{k}", flag: "redlock:queued:{k}"},
		"EVALSHA sha 3 k redlock:queue:{k} redlock:queued:{k} v i,k 17": {verb: "release", key: "k", value: "v", queue: "redlock:queue:{k}", flag: "redlock:queued:{k}"},
		"EVAL script 1 k v 100":                                         {verb: "extend", key: "k", value: "v"},
		"EVALSHA sha 2 k redlock:fence:{k} v 100 1700 604800 0":         {verb: "acquire", key: "k", value: "v", fence: "redlock:fence:{k}", token: 1700},
		"EVALSHA sha 2 k redlock:fence:{k} v 100 1700 604800 1":         {verb: "acquire", key: "k", value: "v", fence: "redlock:fence:{k}", token: 1700, again: true},
		"EVALSHA sha 2 k redlock:fence:{k} v 100 1700 604800":           {verb: "extend", key: "k", value: "v", fence: "redlock:fence:{k}", token: 1700},
		"EVALSHA sha 3 k redlock:queue:{k} redlock:queued:{k} enqueue i,k 17 w": {
			verb: "enqueue", key: "k", queue: "redlock:queue:{k}", flag: "redlock:queued:{k}", ticket: 17, channel: "redlock:wake:i", old: "w",
		},
		"EVALSHA sha 3 k redlock:queue:{k} redlock:queued:{k} dequeue i,k 17 w": {
			verb: "dequeue", key: "k", queue: "redlock:queue:{k}", flag: "redlock:queued:{k}", ticket: 17, channel: "redlock:wake:i", old: "w",
		},
		"EVAL script 3 k redlock:queue:{k} redlock:queued:{k} try i,k 17 w v 100": {
			verb: "acquire", key: "k", value: "v", queue: "redlock:queue:{k}", flag: "redlock:queued:{k}", ticket: 17, channel: "redlock:wake:i", old: "w",
		},
		"EVALSHA sha 4 k redlock:queue:{k} redlock:queued:{k} redlock:fence:{k} try i,k 0 w v 100 1700 604800": {
			verb: "acquire", key: "k", value: "v", queue: "redlock:queue:{k}", flag: "redlock:queued:{k}", channel: "redlock:wake:i", old: "w",
			fence: "redlock:fence:{k}", token: 1700,
		},
		"EVALSHA sha 3 k redlock:queue:{k} redlock:queued:{k} what i,k 17 w": {key: "k", queue: "redlock:queue:{k}", flag: "redlock:queued:{k}"},
		"INFO server": {},
		"HELLO 3":     {},
	} {
		command := strings.Fields(line)
		for i, arg := range command {
			command[i] = strings.ReplaceAll(arg, ",", " ") // the name of a queue entry has a space
		}
		assert.Equal(t, want, operation(command), line)
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
		{order{verb: "release", queue: "q"}, ":2", "granted"},
		{order{verb: "release", queue: "q"}, ":0", "refused"},
		{order{verb: "extend"}, ":2", "refused"},
		{order{verb: "enqueue", queue: "q", ticket: 17}, "-NOPERM no", "failed: NOPERM no"},
		{order{verb: "enqueue", queue: "q", ticket: 17}, ":1", "failed: no answer"},
		{order{verb: "enqueue", queue: "q", ticket: 17}, "*6|:0|:99|:3|:20|:0|:0", "granted: in the queue by 17, 3 ahead"},
		{order{verb: "dequeue", queue: "q", ticket: 17}, "*6|:0|:0|:0|:0|:0|:0", "granted"},
		{order{verb: "acquire", queue: "q", ticket: 17}, "*6|:1|:0|:0|:0|:0|:0", "granted"},
		{order{verb: "acquire", queue: "q", ticket: 17}, "*6|:0|:99|:0|:20|:0|:0", "refused: in the queue by 17, 0 ahead"},
		{order{verb: "acquire", queue: "q", ticket: 17}, "*6|:4|:-1|:1|:20|:0|:0", "refused: in the queue by 17, 1 ahead"},
		{order{verb: "acquire", queue: "q", ticket: 17}, "*6|:3|:0|:0|:17|:1700|:0", "refused: fence 1700"},
		{order{verb: "acquire", queue: "q"}, "*6|:0|:99|:0|:20|:0|:0", "refused"},
	} {
		reply := []byte(strings.ReplaceAll(c.reply, "|", "\r\n") + "\r\n")
		assert.Equal(t, c.want, c.to.said(reply, true), c.reply)
		unheard := strings.ReplaceAll(c.want, stands+"17", "passes")
		assert.Equal(t, unheard, c.to.said(reply, false), "%s, without a subscriber", c.reply)
	}
}

// A node's fence does not go down, and lets only higher tokens pass.
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
		wrong := w.fenced(c.o, c.word, 0, 0, c.before, c.fence, 0)
		if c.broken == "" {
			assert.Empty(t, wrong, name)
		} else {
			assert.Contains(t, wrong, c.broken, name)
		}
	}
	w := &world{fences: map[storage]int64{}, proposed: map[proposal]bool{}, extended: map[string]bool{}}
	assert.Empty(t, w.fenced(take, "granted", 0, 0, stored{}, "7", 0))
	assert.Empty(t, w.fenced(take, "granted", 1, 1, stored{}, "7", 0))
	assert.Equal(t, "was sent again", w.fenced(take, "granted", 0, 0, mine, "7", 0))
}
