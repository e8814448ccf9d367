package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/quorumlock/redlock/bench/masters"
	"github.com/quorumlock/redlock/bench/result"
)

// patience is how long the masters have for the last releases.
const patience = 5 * time.Second

// Measure runs the plan in another process of this program, which is started with flag and the
// plan and must then call [Child]. The masters are those of the plan. It returns an error
// unless they have no keys afterwards; they must have none before.
func Measure(ctx context.Context, set *masters.Set, flag string, p Plan) (result.Renewal, error) {
	var none result.Renewal
	program, err := os.Executable()
	if err != nil {
		return none, err
	}
	plan, err := json.Marshal(p)
	if err != nil {
		return none, err
	}
	cmd := exec.CommandContext(ctx, program, flag, string(plan))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe() // closing it ends the child
	if err != nil {
		return none, err
	}
	defer func() { _ = in.Close() }()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return none, err
	}
	if err := cmd.Start(); err != nil {
		return none, err
	}
	outcome, err := follow(ctx, set, p, json.NewDecoder(out), in)
	_ = in.Close()
	if e := cmd.Wait(); err == nil && e != nil {
		err = e
	}
	if ctx.Err() != nil {
		return none, ctx.Err()
	}
	if err != nil {
		return none, err
	}
	if err := set.AwaitEmpty(ctx, patience); err != nil {
		return none, err
	}
	return outcome, nil
}

// follow receives the child's messages and examines the masters in between.
func follow(ctx context.Context, set *masters.Set, p Plan, from *json.Decoder, to io.Writer) (none result.Renewal, err error) {
	var scripts [2]int64 // that the masters had run when all locks were acquired, and at the end
	for i := range scripts {
		if _, err := next(from); err != nil {
			return none, err
		}
		if scripts[i], err = set.Scripts(ctx); err != nil {
			return none, err
		}
		if err := majorityHas(ctx, set, p); err != nil {
			return none, err
		}
	}
	if _, err := to.Write([]byte{'\n'}); err != nil {
		return none, err
	}
	m, err := next(from)
	if err != nil {
		return none, err
	}
	if m.Outcome == nil {
		return none, errors.New("the child did not say what it found")
	}
	renewals := float64(scripts[1]-scripts[0]) / float64(len(p.Addrs))
	m.Outcome.PerSecond = renewals / p.For.Seconds()
	return *m.Outcome, nil
}

func next(from *json.Decoder) (m message, err error) {
	if err := from.Decode(&m); err != nil {
		return m, fmt.Errorf("the child that holds the locks has ended: %w", err)
	}
	if m.Error != "" {
		return m, errors.New(m.Error)
	}
	return m, nil
}

// majorityHas checks that the masters have at least as many keys as a majority for each lock.
func majorityHas(ctx context.Context, set *masters.Set, p Plan) error {
	counts, err := set.Keys(ctx, len(p.Addrs))
	if err != nil {
		return err
	}
	total := int64(0)
	for _, n := range counts {
		total += n
	}
	// Each lock is on a majority, but not all locks are on the same one.
	if want := int64(p.Locks * (len(p.Addrs)/2 + 1)); total < want {
		return fmt.Errorf("the masters have %v keys, %d altogether, want at least %d", counts, total, want)
	}
	return nil
}
