package masterlist

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/plain"
)

// Environment variables that list masters, as --nodes and --nodes-file do.
const (
	NodesVariable     = "REDLOCK_NODES"
	NodesFileVariable = "REDLOCK_NODES_FILE"
)

// SystemNodes lists the masters of all users of a host.
const SystemNodes = "/etc/redlock/nodes"

// SystemFile is the file that is read for SystemNodes; tests use another.
var SystemFile = SystemNodes

// List has the masters' URLs, and their source.
type List struct {
	source  string // a flag, a variable or a file
	urls    []string
	places  []string // where each URL stands in the source
	exposed string   // warns that others may learn the passwords; empty if they may not
}

// list finds the masters in --nodes or --nodes-file, or else in the variables, or else in the
// user's or the system's file. An empty variable counts as not set. Each error is a usage error.
func (c *Flags) list() (*List, error) {
	named := c.set.Changed("nodes-file")
	switch {
	case named && len(c.nodes) > 0:
		return nil, cli.Usagef("--nodes and --nodes-file exclude each other")
	case named && c.file == "":
		return nil, cli.Usagef("--nodes-file is empty")
	case named:
		return listIn(c.file)
	case len(c.nodes) > 0:
		return Of("--nodes", c.nodes), nil
	}
	if text := os.Getenv(NodesVariable); strings.TrimSpace(text) != "" {
		var nodes URLs
		_ = nodes.Set(text)
		return Of(NodesVariable, nodes), nil
	}
	if file := os.Getenv(NodesFileVariable); strings.TrimSpace(file) != "" {
		return listIn(file)
	}
	files := []string{SystemFile}
	if folder, err := os.UserConfigDir(); err == nil { // otherwise there is no home folder
		files = append([]string{filepath.Join(folder, "redlock", "nodes")}, files...)
	}
	for _, file := range files {
		list, err := listIn(file)
		if !errors.Is(err, fs.ErrNotExist) {
			return list, err
		}
	}
	return nil, cli.Usagef("no masters: give --nodes or --nodes-file, set %s or %s, or list them in %s",
		NodesVariable, NodesFileVariable, strings.Join(files, " or "))
}

func Of(source string, urls []string) *List {
	l := &List{source: source, urls: urls}
	for i := range urls {
		l.places = append(l.places, fmt.Sprintf("URL %d", i+1))
	}
	return l
}

// comment matches a comment at the end of a line. A # within a URL does not begin one.
var comment = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(^|\s)#.*`) })

// listIn reads a file with one URL in a line.
func listIn(file string) (*List, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, cli.Usagef("cannot read the list of masters %s: %w", file, plain.Reason(err))
	}
	l := &List{source: file}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if line = strings.TrimSpace(comment().ReplaceAllLiteralString(strings.TrimSpace(line), "")); line != "" {
			l.urls = append(l.urls, line)
			l.places = append(l.places, fmt.Sprintf("line %d", number))
		}
	}
	if len(l.urls) == 0 {
		return nil, cli.Usagef("%s lists no masters", file)
	}
	l.exposed = exposed(file, l.urls)
	return l, nil
}

// exposed warns if others than the file's owner can read or change its passwords. A group may read
// the system's file.
func exposed(file string, urls []string) string {
	password := false
	for _, u := range urls {
		if parsed, err := url.Parse(u); err == nil && parsed.User != nil {
			_, has := parsed.User.Password()
			password = password || has
		}
	}
	info, err := os.Stat(file)
	if !password || err != nil || !info.Mode().IsRegular() || runtime.GOOS == "windows" {
		return ""
	}
	mode := info.Mode().Perm()
	barred := fs.FileMode(0o066)
	if file == SystemFile {
		barred = 0o026
	}
	if mode&barred == 0 {
		return ""
	}
	return fmt.Sprintf("%s contains passwords, and its mode %04o lets others read or change it: chmod 600", file, mode)
}

// place matches the name that redlock.Open gives a URL.
var place = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`urls\[(\d+)\]`) })

// Wrong turns an error of redlock.Open into a usage error: Open asks no server, so each of its
// errors is about its arguments. It names a URL by its place and never quotes it.
func (l *List) Wrong(err error) error {
	text := place().ReplaceAllStringFunc(strings.TrimPrefix(err.Error(), "redlock: "), func(match string) string {
		i, err := strconv.Atoi(place().FindStringSubmatch(match)[1])
		if err != nil || i >= len(l.places) {
			return match
		}
		return l.places[i]
	})
	return &cli.UsageError{Err: fmt.Errorf("%s: %s", l.source, text)}
}
