//go:build unix

package session

import (
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/internal/testenv/redisserver"
)

// masters starts masters. With -short it skips the rest of the script; the words before it need no
// server.
func (s *Session) masters(args []string) error {
	flags := flag.NewFlagSet("masters", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	linked := flags.Bool("linked", false, "")
	secured := flags.Bool("tls", false, "")
	password := flags.String("password", "", "")
	if len(args) == 0 {
		return fmt.Errorf("usage: masters N [-linked] [-tls] [-password WORD]")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if testing.Short() {
		s.t.Skip("-short leaves out what needs redis-server")
	}
	var options []redisserver.Option
	if *password != "" {
		options = append(options, redisserver.RequirePass(*password))
	}
	if *secured {
		options = append(options, redisserver.TLS())
	}
	if s.Servers, err = redisserver.Launch(n, options...); err != nil {
		return err
	}
	s.frozen = make([]bool, n)
	var urls, direct []string
	for i, m := range s.Servers {
		url := m.URL()
		direct = append(direct, url)
		if *linked {
			l, err := redisserver.OpenLink(m.Addr())
			if err != nil {
				return err
			}
			s.links = append(s.links, l)
			url = strings.Replace(url, m.Addr(), l.Addr(), 1)
		}
		urls = append(urls, url)
		s.Admin = append(s.Admin, m.Client())
		s.Set(fmt.Sprintf("NODE%d", i+1), url)
		s.Set(fmt.Sprintf("ADDR%d", i+1), m.Addr())
		if *secured {
			s.Set("TLS", m.Dir())
		}
	}
	s.Set(masterlist.NodesVariable, strings.Join(urls, ","))
	s.Set("DIRECT_NODES", strings.Join(direct, ","))
	return nil
}

// OnEach calls do for each of the masters in args, until one call fails.
func (s *Session) OnEach(args []string, do func(i int) error) error {
	which, err := s.numbers(args)
	for _, i := range which {
		if err == nil {
			err = do(i)
		}
	}
	return err
}

func (s *Session) down(args []string) error {
	return s.OnEach(args, func(i int) error { s.Servers[i].Kill(); s.frozen[i] = false; return nil })
}

func (s *Session) up(args []string) error {
	return s.OnEach(args, func(i int) error { return s.Servers[i].Restart() })
}

func (s *Session) freeze(args []string) error {
	return s.OnEach(args, func(i int) error { s.frozen[i] = true; return s.Servers[i].Pause() })
}

func (s *Session) thaw(args []string) error {
	return s.OnEach(args, func(i int) error { s.frozen[i] = false; return s.Servers[i].Resume() })
}

func (s *Session) cut(args []string) error {
	return s.OnEach(args, func(i int) error { s.links[i].Stall(); return nil })
}

func (s *Session) heal(args []string) error {
	return s.OnEach(args, func(i int) error { s.links[i].Resume(); return nil })
}

// answering returns the masters that run and are not frozen.
func (s *Session) answering() (which []int) {
	for i, m := range s.Servers {
		if m.PID() != 0 && !s.frozen[i] {
			which = append(which, i)
		}
	}
	return which
}
