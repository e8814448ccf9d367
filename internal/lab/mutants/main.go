// Command mutants plants bugs in the library, one at a time, and runs the simulation to find
// them. A bug that the simulation does not find is a hole in it. Bugs that only delay, by less
// than the simulation allows for, are found by a test in virtual time. The command changes no
// source file: each bug is an overlay of a build.
//
// A bug is a patch file, SUBJECT/NAME.patch in this folder. Its first line says what the bug
// breaks. Its second says what finds it: the simulation with these flags, or a test ("found by:
// TestName"). After an empty line comes a unified diff, as `git diff -U1` prints it:
//
//	a node grants a token that it has granted before
//	found by: sim --fencing
//
//	--- a/internal/script/propose.lua
//	…
//
// A hunk applies at any line, but only if its text occurs once in the file. After other changes
// to the library, -refresh rewrites the patches that still have one place, and lists the others.
//
//	go run ./internal/lab/mutants                  all of them
//	go run ./internal/lab/mutants quorum-too-small one
//	go run ./internal/lab/mutants -seeds 0         only build each
//	go run ./internal/lab/mutants -part 2/3        every third of them, from the second on
//	go run ./internal/lab/mutants -write docs/testing.md
//	go run ./internal/lab/mutants -refresh         make line numbers and context exact again
//
// The exit status is 1 if a bug survives.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

func main() {
	seeds := flag.Int("seeds", 300, "how many seeds a bug has to be found in; 0: only build each bug")
	jobs := flag.Int("jobs", 2, "how many are hunted at a time")
	write := flag.String("write", "", "put the table into this `file`, between its marks")
	part := flag.String("part", "1/1", "which `part` of the bugs, of how many")
	refreshing := flag.Bool("refresh", false, "hunt nothing; rewrite the patches that still apply, with exact line numbers and context")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *seeds, *jobs, *part, *write, *refreshing, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, seeds, jobs int, part, write string, refreshing bool, names []string) error {
	root, err := root(ctx)
	if err != nil {
		return err
	}
	all, err := load(root)
	if err != nil {
		return err
	}
	hunted, err := share(all, part)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		hunted = slices.DeleteFunc(hunted, func(m mutant) bool { return !slices.Contains(names, m.name) })
		if len(hunted) != len(names) {
			return fmt.Errorf("not all of %s are planted bugs", strings.Join(names, ", "))
		}
	}
	if refreshing {
		return refresh(root, hunted)
	}
	found, failed := make([]catch, len(hunted)), make([]error, len(hunted))
	var group errgroup.Group // a bug that does not build does not end the hunt for the others
	group.SetLimit(jobs)
	for i, m := range hunted {
		group.Go(func() error {
			if found[i], failed[i] = hunt(ctx, root, m, seeds); failed[i] == nil {
				fmt.Println(found[i])
			} else if ctx.Err() == nil {
				fmt.Printf("%-24s NOT HUNTED: %v\n", m.name, failed[i])
			}
			return nil
		})
	}
	_ = group.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	survivors := 0
	for _, c := range found {
		if c.seed == 0 {
			survivors++
		}
	}
	fmt.Printf("%d bugs planted, %d found, %d survive %d seeds\n", len(found), len(found)-survivors, survivors, seeds)
	if write != "" {
		if err := record(write, found); err != nil {
			return err
		}
	}
	if survivors > 0 {
		return fmt.Errorf("%d bugs survive", survivors)
	}
	return nil
}

// share returns a part of all: 2/3 is every third from the second on.
func share(all []mutant, part string) (some []mutant, err error) {
	n, of := 0, 0
	if _, err := fmt.Sscanf(part, "%d/%d", &n, &of); err != nil || n < 1 || n > of {
		return nil, fmt.Errorf("-part is %q, want one such as 2/3", part)
	}
	for i := n - 1; i < len(all); i += of {
		some = append(some, all[i])
	}
	return some, nil
}

// catch is how a bug was found.
type catch struct {
	mutant
	seed int    // the first that shows the bug; the last that was to run if how is crash; 0 if none did
	how  string // the rule that was broken
}

func (c catch) String() string {
	if c.seed == 0 {
		return fmt.Sprintf("%-24s SURVIVES", c.name)
	}
	return fmt.Sprintf("%-24s seed %3d  %s", c.name, c.seed, c.how)
}

// crash is the value of catch.how for a bug that panics in a goroutine of the library.
const crash = "crash"

// violated matches the command's report of the first run with a violation.
var violated = regexp.MustCompile(`seed (\d+): \d+ violations, the first: \S+ (\w+):`)

// hunt builds the command with the bug and runs seeds until one shows it. For a bug with a
// test it runs the test instead.
func hunt(ctx context.Context, root string, m mutant, seeds int) (catch, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return catch{mutant: m}, err
	}
	defer os.RemoveAll(dir)
	if seeds == 0 {
		_, err := m.build(ctx, root, dir)
		return catch{mutant: m, seed: 1, how: "builds"}, err
	}
	if m.test != "" {
		failed, err := m.fails(ctx, root, dir)
		if !failed {
			return catch{mutant: m}, err
		}
		return catch{mutant: m, seed: 1, how: m.test}, err
	}
	binary, err := m.build(ctx, root, dir)
	if err != nil {
		return catch{mutant: m}, err
	}
	out, err := exec.CommandContext(ctx, binary, append([]string{"sim", "--first", "--seeds", fmt.Sprintf("1-%d", seeds)}, m.flags...)...).CombinedOutput()
	if ctx.Err() != nil {
		return catch{mutant: m}, ctx.Err()
	}
	if err == nil {
		return catch{mutant: m}, nil
	}
	match := violated.FindSubmatch(out)
	if match == nil && bytes.Contains(append([]byte("\n"), out...), []byte("\npanic: ")) {
		return catch{mutant: m, seed: seeds, how: crash}, nil
	}
	if match == nil {
		return catch{mutant: m}, fmt.Errorf("mutant %s: %w\n%s", m.name, err, bytes.TrimSpace(out))
	}
	seed, _ := strconv.Atoi(string(match[1]))
	return catch{mutant: m, seed: seed, how: string(match[2])}, nil
}

const (
	begin = "<!-- go run ./internal/lab/mutants -write docs/testing.md -->\n"
	end   = "<!-- end -->\n"
)

// record writes the table between its marks in a file.
func record(file string, found []catch) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(text, []byte(begin))
	_, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for the table: %q … %q", file, begin, end)
	}
	var b bytes.Buffer
	b.Write(before)
	b.WriteString(begin)
	b.WriteString("\n| planted bug | what it does | found by seed | broken rule |\n|---|---|---|---|\n")
	for _, c := range found {
		seed := strconv.Itoa(c.seed)
		switch {
		case c.seed == 0:
			seed, c.how = "**survives**", "–"
		case c.how == crash:
			seed = "at most " + seed
		case c.test != "":
			seed = "–"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.name, c.story, seed, c.how)
	}
	b.WriteString("\n" + end)
	b.Write(after)
	return os.WriteFile(file, b.Bytes(), 0o666)
}
