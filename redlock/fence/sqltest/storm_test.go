package sqltest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock/fence"
)

// outcome is one committed write. from and till are the counts of a counter that all goroutines
// share, right before and right after the commit.
type outcome struct {
	resource   string
	token      int64
	from, till int64
}

// TestStorm runs many holders, most of them late, on few resources. Two checks, which do not know
// how the guard works, judge the result: the order in which the database committed the writes,
// and what the writers saw. No commit may begin after the commit of a higher token has ended.
func TestStorm(t *testing.T) {
	patient := slices.Clone(settings)
	for i := range patient {
		if patient[i].engine == &sqlite {
			patient[i].options += "&_pragma=busy_timeout(30000)"
		}
	}
	run(t, patient, func(s *store) {
		const holders, writes = 6, 20
		var (
			moments, latest  atomic.Int64
			g                sync.WaitGroup
			mu               sync.Mutex
			committed        []outcome
			refused, retried int
		)
		for i := range holders {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			g.Go(func() {
				for range writes {
					o := outcome{
						resource: fmt.Sprint("r", random.IntN(2)),
						token:    max(1, latest.Add(1)-random.Int64N(2*holders)),
					}
					look := random.IntN(3) == 0
					for {
						err := s.storm(&o, look, &moments)
						mu.Lock()
						switch {
						case err == nil:
							committed = append(committed, o)
						case s.engine.again(err):
							retried++
						case errors.Is(err, fence.ErrStaleToken):
							refused++
						default:
							t.Error(err)
						}
						mu.Unlock()
						if err == nil || !s.engine.again(err) || s.ctx.Err() != nil {
							break
						}
					}
				}
			})
		}
		g.Wait()
		s.Logf("%d committed, %d refused, %d tried again", len(committed), refused, retried)
		require.Equal(s, holders*writes, len(committed)+refused, "every write ends")
		require.NotEmpty(s, committed)
		require.NotZero(s, refused)

		highest := map[string]int64{}
		total := 0
		for _, resource := range []string{"r0", "r1"} {
			tokens := s.written(resource)
			require.IsNonDecreasing(s, tokens, "%s: the database's own order", resource)
			total += len(tokens)
			highest[resource] = tokens[len(tokens)-1]
			require.Equal(s, highest[resource], s.stored(resource))
		}
		require.Equal(s, len(committed), total, "what is refused is not written")
		for _, a := range committed {
			for _, b := range committed {
				require.False(s, a.resource == b.resource && a.token > b.token && a.till < b.from,
					"%+v was over when %+v was committed", a, b)
			}
		}
	})
}

// storm tries a write once.
func (s *store) storm(o *outcome, look bool, moments *atomic.Int64) error {
	h, err := s.holder(o.resource, o.token)
	if err != nil {
		return err
	}
	if look {
		err = h.look()
	}
	if err == nil {
		err = h.check()
	}
	if err == nil {
		err = h.write()
	}
	if err != nil {
		h.rollback()
		return err
	}
	o.from = moments.Add(1)
	err = h.commit()
	o.till = moments.Add(1)
	return err
}
