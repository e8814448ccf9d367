package nodes

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlock"
)

// warning is a problem that an operator should solve. Node is empty if it concerns all masters.
type warning struct {
	Code string `json:"code"`
	Node string `json:"node,omitempty"`
	Text string `json:"text"`
}

// rule finds one problem of a master. find describes it, or returns "" if the master does not have
// it.
type rule struct {
	code string
	bars bool // the problem keeps the master from voting
	find func(*master) string
}

// masterRules returns the rules, the most important one first: a master's state is the code of the
// first rule that bars it.
func masterRules(guard, ttl time.Duration) []rule {
	return []rule{
		{"unreachable", true, tellUnreachable},
		{"password", true, tellPassword},
		{"duplicate", true, tellDuplicate},
		{"replica", true, tellReplica},
		{"loading", true, tellLoading},
		{"rights", true, tellRights},
		{"cluster", true, tellCluster},
		{"writes", true, tellWrites},
		{"quarantine", true, tellQuarantine},
		{"failing", true, tellFailing},
		{"memory", false, func(m *master) string { return tellMemory(m, guard) }},
		{"deposed", false, func(m *master) string { return tellDeposed(m, guard, ttl) }},
		{"eviction", false, tellEviction},
		{"clock", false, tellClock},
		{"timeout", false, tellTimeout},
		{"version", false, tellVersion},
		{"queue", false, tellQueue},
	}
}

// judge sets each master's state and returns all warnings.
func judge(masters []*master, guard, ttl time.Duration) (all []warning) {
	findDuplicates(masters)
	astray := hostAstray(masters)
	for _, r := range masterRules(guard, ttl) {
		if r.code == "clock" && astray != "" {
			all = append(all, warning{Code: r.code, Text: astray})
			continue
		}
		for _, m := range masters {
			// A master that must be replaced need not be set right.
			if !r.bars && (m.State == "duplicate" || m.State == "replica") {
				continue
			}
			text := r.find(m)
			if text == "" {
				continue
			}
			all = append(all, warning{r.code, m.Addr, text})
			if r.bars && m.State == stateOK {
				m.State = r.code
			}
		}
	}
	if w := tooFew(len(masters)); w.Text != "" {
		all = append(all, w)
	}
	return all
}

// tooFew warns about the number of masters.
func tooFew(n int) warning {
	switch {
	case n == 1:
		return warning{Code: "single", Text: "One master survives no failure. Use three, which survive one, or five."}
	case n == 2:
		return warning{Code: "single", Text: "Two masters survive no failure, as a majority of two is both. Use three."}
	case n%2 == 0:
		return warning{Code: "even", Text: fmt.Sprintf("%d masters survive the loss of %d, as %d do. Use one more, or one less.", n, (n-1)/2, n-1)}
	}
	return warning{}
}

func tellUnreachable(m *master) string {
	if m.err == nil || refused(m.err) {
		return ""
	}
	return unanswered(m.err, m.patience, m.secured) + ". Is the server running, and may this host connect to it?"
}

func tellPassword(m *master) string {
	switch {
	case says(m.err, "NOAUTH"):
		return "It wants a password, and the URL has none: redis://user:password@host."
	case says(m.err, "WRONGPASS"):
		return "It refuses the user or the password of the URL. Special characters of a password must be percent-encoded."
	}
	return ""
}

func tellDuplicate(m *master) string {
	if m.duplicateOf == "" {
		return ""
	}
	return fmt.Sprintf("It is the same server as %s, and would have two votes; clients refuse to lock. List each server once.", m.duplicateOf)
}

// findDuplicates finds servers that are listed twice.
func findDuplicates(masters []*master) {
	first := map[string]string{}
	for _, m := range masters {
		if addr, twice := first[m.RunID]; twice && m.RunID != "" {
			m.duplicateOf = addr
			continue
		}
		first[m.RunID] = m.Addr
	}
}

func tellReplica(m *master) string {
	if m.Role != "replica" {
		return ""
	}
	return fmt.Sprintf("It is a replica of %s, and cannot vote. Give a master that is independent of the others.", m.ReplicaOf)
}

func tellLoading(m *master) string {
	if !m.loading && !says(m.unable, "LOADING") {
		return ""
	}
	return "It is loading its data, and votes when that is done."
}

func tellRights(m *master) string {
	for _, err := range []error{m.err, m.unable, m.ineligible} {
		if says(err, "NOPERM") {
			return fmt.Sprintf("The user may not do what a lock needs: %s. See the ACL in docs/operations.md, and is --prefix right?", said(err))
		}
	}
	if len(m.lacksToLock) > 0 {
		return fmt.Sprintf("The user may not do what a lock needs: %s. See the ACL in docs/operations.md, and is --prefix right?", strings.Join(m.lacksToLock, ", "))
	}
	return ""
}

// tellQueue is about a user that can lock, but is not woken when a lock is free.
func tellQueue(m *master) string {
	if m.State != stateOK || len(m.lacksToWait) == 0 {
		return ""
	}
	return fmt.Sprintf("The user may not do what a wait in the queue needs: %s. Waits poll in place of it, and wake nobody. See the second list of the ACL in docs/operations.md.", strings.Join(m.lacksToWait, ", "))
}

func tellCluster(m *master) string {
	if !m.cluster {
		return ""
	}
	return "It has some slots of a Cluster, and refuses all other keys. Make a redis.ClusterClient of the whole Cluster, which then is one node, for redlock.New."
}

func tellWrites(m *master) string {
	switch {
	case m.appendFailed:
		return "It cannot write its append-only file, and refuses to write at all (MISCONF). Look at its disk and its log."
	case m.saveFailed:
		return "Its last snapshot failed, so that it refuses to write (MISCONF). Look at its disk and its log."
	case m.MinReplicas != nil && m.replicas != nil && *m.replicas < *m.MinReplicas:
		return fmt.Sprintf("It refuses to write (NOREPLICAS), as it has %d good replicas and min-replicas-to-write is %d.", *m.replicas, *m.MinReplicas)
	case m.full:
		return fmt.Sprintf("Its memory is full (maxmemory %s), so that it refuses to write (OOM).", size(*m.Maxmemory))
	}
	return ""
}

func tellQuarantine(m *master) string {
	if m.Quarantine == 0 || m.State == "duplicate" || m.State == "replica" {
		return ""
	}
	what := "It was restarted"
	if m.ineligible != nil && strings.Contains(m.ineligible.Error(), "took over") {
		what = "Another server took its place"
	}
	return what + " less than the guard ago, and may have forgotten locks. Its votes count when the quarantine is over. Restart no other master before that."
}

// tellFailing covers every error that a lock would meet and that no rule above describes.
func tellFailing(m *master) string {
	if m.State != stateOK {
		return ""
	}
	for _, err := range []error{m.err, m.unable, m.ineligible} {
		if err != nil && !errors.Is(err, redlock.ErrDuplicateNode) {
			return fmt.Sprintf("It does not answer as a lock needs it: %s.", said(err))
		}
	}
	return ""
}

func tellMemory(m *master, guard time.Duration) string {
	const remedy = "Give all clients a RestartGuard, and this command --restart-guard; or set appendonly yes and appendfsync always; " +
		"or keep a crashed master down for longer than the longest ttl."
	switch {
	case guard > 0:
	case m.Appendonly == "no":
		return "appendonly is no: a restart forgets locks, and lets a second holder in. " + remedy
	case m.Appendfsync != "" && m.Appendfsync != "always":
		return fmt.Sprintf("appendfsync is %s: a crash forgets the last locks, and lets a second holder in. %s", m.Appendfsync, remedy)
	}
	return ""
}

// deposedSlack is how much longer than min-replicas-max-lag a master that is cut off from its
// replica can go on writing. Redis counts the lag in whole seconds, and checks it once a second.
// With a lag of 1 s, the master of a stopped replica wrote for up to 2.5 s.
const deposedSlack = 2 * time.Second

// tellDeposed is about masters that fail over: those with min-replicas-to-write. A deposed master
// that does not know it yet grants locks until it misses its replica, and the last lock then lasts
// for the longest ttl. The guard counts from the promotion. Nothing is known without the right to
// CONFIG GET.
func tellDeposed(m *master, guard, ttl time.Duration) string {
	if guard <= 0 || m.MinReplicas == nil || *m.MinReplicas < 1 || m.MaxLag == nil || *m.MaxLag < 0 {
		return ""
	}
	ttl = cmp.Or(ttl, guard)
	lag := seconds(*m.MaxLag)
	need := clock.Sum(clock.Sum(ttl, lag), deposedSlack)
	if guard >= need {
		return ""
	}
	return fmt.Sprintf("A deposed master can go on granting locks for min-replicas-max-lag and 2 seconds, %v. "+
		"The guard of %v does not cover that and the longest ttl, %v: a promotion can let a second holder in. "+
		"Give all clients a RestartGuard of %v, and this command --restart-guard and --ttl.", clock.Sum(lag, deposedSlack), guard, ttl, need)
}

// tellEviction warns of every policy but noeviction: all others evict keys with a ttl, and all our
// keys have one.
func tellEviction(m *master) string {
	switch {
	case m.Policy == "" || m.Policy == "noeviction":
		return ""
	case m.Maxmemory != nil && *m.Maxmemory == 0:
		return fmt.Sprintf("maxmemory-policy %s evicts locks as soon as somebody sets maxmemory. Set noeviction.", m.Policy)
	}
	return fmt.Sprintf("maxmemory-policy %s evicts locks when the memory is full. Set noeviction.", m.Policy)
}

func tellTimeout(m *master) string {
	if m.Timeout == nil || *m.Timeout <= 0 || *m.Timeout >= 60 {
		return ""
	}
	return fmt.Sprintf("timeout is %d: the server closes connections after so many idle seconds, and one that is just being used again costs a vote. Set 0, or 60 and more.", *m.Timeout)
}

func tellVersion(m *master) string {
	var major, minor int
	if n, _ := fmt.Sscanf(m.Version, "%d.%d", &major, &minor); n < 2 || cmp.Or(cmp.Compare(major, 6), cmp.Compare(minor, 2)) >= 0 {
		return ""
	}
	return fmt.Sprintf("It is Redis %s, and fencing tokens need 6.2. All else works.", m.Version)
}
