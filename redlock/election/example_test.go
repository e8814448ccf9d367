package election_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/election"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// The examples use in-memory masters; use real ones.
var masters []string

// withExamples starts the masters that the examples run on.
type withExamples struct{ tests *testing.M }

func (m withExamples) Run() int {
	five, err := redlocktest.New(5)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	masters = five.URLs()
	defer func() { _ = five.Close() }()
	return m.tests.Run()
}

func Example() {
	locks, err := redlock.Open(masters, redlock.Config{Fencing: true})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	// Every process of the service does this. One leads, the others stand by.
	leaders := election.New(locks, "leader:scheduler", 10*time.Second)
	err = leaders.Lead(context.Background(), func(ctx context.Context) error {
		for job := range 2 {
			if ctx.Err() != nil {
				return context.Cause(ctx) // lost, or the process is to end
			}
			fmt.Println("job", job)
		}
		return nil // resigns
	})
	fmt.Println("done:", err)
	// Output:
	// job 0
	// job 1
	// done: <nil>
}

func ExampleElection_Campaign() {
	locks, err := redlock.Open(masters, redlock.Config{Fencing: true})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	ctx := context.Background()
	leaders := election.New(locks, "leader:mailer", 10*time.Second)

	term, err := leaders.Campaign(ctx)
	if err != nil {
		log.Fatal(err)
	}
	// Stop before the release, never after it.
	defer term.Release(ctx)

	fmt.Println("leading:", leaders.IsLeader(ctx) == nil)
	fmt.Println("has a token:", term.FencingToken() > 0)
	fmt.Println("over:", term.Context().Err() != nil)
	// Output:
	// leading: true
	// has a token: true
	// over: false
}

func ExampleElection_IsLeader() {
	locks, err := redlock.Open(masters, redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	leaders := election.New(locks, "leader:sweeper", 10*time.Second)

	err = leaders.Lead(context.Background(), func(ctx context.Context) error {
		for range 2 {
			// Right before each action, as the process may have been paused.
			if err := leaders.IsLeader(ctx); err != nil {
				return err
			}
			fmt.Println("sweep")
		}
		return nil
	})
	fmt.Println(err, errors.Is(leaders.IsLeader(context.Background()), election.ErrNotLeader))
	// Output:
	// sweep
	// sweep
	// <nil> true
}

func ExampleElection_Leader() {
	locks, err := redlock.Open(masters, redlock.Config{Owner: "web-3"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	ctx := context.Background()
	leaders := election.New(locks, "leader:indexer", 10*time.Second)

	_, err = leaders.Leader(ctx)
	fmt.Println(err)
	term, err := leaders.Campaign(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer term.Release(ctx)
	leader, err := leaders.Leader(ctx)
	fmt.Println(err, leader.Owner, leader.Holder == term.Holder())
	// Output:
	// election: no leader of "leader:indexer"
	// <nil> web-3 true
}

func ExampleElection_Observe() {
	locks, err := redlock.Open(masters, redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	ctx := context.Background()
	leaders := election.New(locks, "leader:router", 10*time.Second)

	for leader, err := range leaders.Observe(ctx) {
		switch {
		case errors.Is(err, election.ErrNoLeader):
			fmt.Println("nobody leads")
			if _, err := leaders.Campaign(ctx); err != nil {
				log.Fatal(err)
			}
			continue
		case err != nil:
			log.Print(err) // too few masters answer; the loop goes on
			continue
		}
		fmt.Println("route to the leader", leader.Holder != "")
		break
	}
	// Output:
	// nobody leads
	// route to the leader true
}
