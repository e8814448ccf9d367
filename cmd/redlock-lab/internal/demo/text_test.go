package demo

import (
	"bytes"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/cli/clitest"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
)

func exampleStep() *step {
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	r := newRound("A", "acquire", "k", redlock.Trace{
		Op: "acquire", Need: 3, Elapsed: 1500 * time.Microsecond,
		Nodes: []redlock.NodeTrace{
			{Addr: "10.0.0.1:6379", Vote: quorum.Granted, Latency: time.Millisecond},
			{Addr: strings.Repeat("a", 60) + ":6379", Vote: quorum.Failed, Latency: time.Second, Err: dial},
			{Addr: "10.0.0.3:6379", Vote: quorum.Pending, Err: quorum.ErrNotSent},
			{Addr: "10.0.0.4:6379", Vote: quorum.Failed, Err: errors.New("ERR \x1b[31m" + strings.Repeat("long ", 20) + strings.Repeat("x", 90))},
			{Addr: "10.0.0.5:6379", Vote: quorum.Granted, Latency: 2 * time.Millisecond},
		},
	}, &redlock.QuorumError{Op: "acquire", Key: "k", Need: 3, Granted: 1, Total: 5, Reason: redlock.ErrNoQuorum,
		Nodes: []redlock.NodeError{{Addr: "10.0.0.4:6379", Index: 3, Err: errors.New("one")}, {Addr: "10.0.0.5:6379", Index: 4, Err: errors.New("two")}}})
	r.worth = newWorth(time.Second, 0, redlock.ErrNoQuorum)
	return &step{Number: 1, Title: "title", Rounds: []round{r}}
}

func TestColourChangesNothingElse(t *testing.T) {
	var plain, painted bytes.Buffer
	require.NoError(t, text{&plain, false}.step(exampleStep()))
	require.NoError(t, text{&painted, true}.step(exampleStep()))
	assert.NotContains(t, plain.String(), "\x1b")
	assert.Contains(t, painted.String(), "\x1b[31mfailed")
	assert.Equal(t, plain.String(), clitest.Escapes.ReplaceAllString(painted.String(), ""))
	clitest.AssertFits(t, plain.String())
}

func TestTableShowsEachVote(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, text{&out, false}.step(exampleStep()))
	assert.Contains(t, out.String(), "1.00 ms  OK\n")
	assert.Contains(t, out.String(), "aaa...  failed     1000.00 ms  connection refused\n")
	assert.Contains(t, out.String(), "not asked")
	assert.Contains(t, out.String(), "Not acquired, no quorum (1 of 5): elapsed 1.50 ms, drift 12 ms, no validity\n")
	assert.Contains(t, out.String(), "needed:\n      10.0.0.4:6379: one;\n      10.0.0.5:6379: two\n")
}

// The table shows the final votes, and the error shows those at the decision. A grant that came in
// between is not counted.
func TestGrantThatCameTooLateIsNotCounted(t *testing.T) {
	var out bytes.Buffer
	s := exampleStep()
	require.NoError(t, text{&out, false}.step(s))
	assert.Equal(t, 1, s.Rounds[0].Granted)
	assert.False(t, s.Rounds[0].Votes[0].Late)
	assert.True(t, s.Rounds[0].Votes[4].Late)
	assert.Contains(t, out.String(), "2.00 ms  OK, too late: not\n")
	assert.Contains(t, out.String(), "no quorum: 1 of 5 nodes granted")
}

func TestSaidIsWholeForMachines(t *testing.T) {
	s := exampleStep()
	assert.Equal(t, "dial tcp: connect: connection refused", s.Rounds[0].Votes[1].Said)
	assert.NotContains(t, s.Rounds[0].Votes[3].Said, "\x1b")
	assert.Contains(t, s.Rounds[0].Votes[3].Said, strings.Repeat("x", 90))
}

func TestSilentMasterIsNotHidden(t *testing.T) {
	var out bytes.Buffer
	r := newRound("A", "release", "k", redlock.Trace{Elapsed: time.Millisecond}, nil)
	require.NoError(t, text{&out, false}.step(&step{Number: 4, Title: "release", Rounds: []round{r}}))
	assert.Contains(t, out.String(), "Released, though not every master has answered: elapsed 1.00 ms\n")
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                        "0.00 ms",
		1234 * time.Microsecond:  "1.23 ms",
		102 * time.Millisecond:   "102 ms",
		9897 * time.Millisecond:  "9.897 s",
		10 * time.Second:         "10 s",
		100 * time.Second:        "100 s",
		1500 * time.Millisecond:  "1.5 s",
		999 * time.Millisecond:   "999 ms",
		10 * time.Millisecond:    "10 ms",
		10500 * time.Microsecond: "10 ms",
	} {
		assert.Equal(t, want, span(cli.Micros(d)), d)
	}
}
