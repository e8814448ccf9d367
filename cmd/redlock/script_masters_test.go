//go:build unix

package main

import (
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
)

// masters is where -short leaves a script out: those before it need no server.
func (s *session) masters(args []string) error {
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
	if s.servers, err = redisserver.Launch(n, options...); err != nil {
		return err
	}
	s.frozen = make([]bool, n)
	var urls, direct []string
	for i, m := range s.servers {
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
		s.admin = append(s.admin, m.Client())
		s.setenv(fmt.Sprintf("NODE%d", i+1), url)
		s.setenv(fmt.Sprintf("ADDR%d", i+1), m.Addr())
		if *secured {
			s.setenv("TLS", m.Dir())
		}
	}
	s.setenv(nodesVariable, strings.Join(urls, ","))
	s.setenv("DIRECT_NODES", strings.Join(direct, ","))
	return nil
}

// onEach does something to each of the masters in args.
func (s *session) onEach(args []string, do func(i int) error) error {
	which, err := s.numbers(args)
	for _, i := range which {
		if err == nil {
			err = do(i)
		}
	}
	return err
}

func (s *session) down(args []string) error {
	return s.onEach(args, func(i int) error { s.servers[i].Kill(); s.frozen[i] = false; return nil })
}

func (s *session) up(args []string) error {
	return s.onEach(args, func(i int) error { return s.servers[i].Restart() })
}

func (s *session) freeze(args []string) error {
	return s.onEach(args, func(i int) error { s.frozen[i] = true; return s.servers[i].Pause() })
}

func (s *session) thaw(args []string) error {
	return s.onEach(args, func(i int) error { s.frozen[i] = false; return s.servers[i].Resume() })
}

func (s *session) cut(args []string) error {
	return s.onEach(args, func(i int) error { s.links[i].Stall(); return nil })
}

func (s *session) heal(args []string) error {
	return s.onEach(args, func(i int) error { s.links[i].Resume(); return nil })
}

// answering are the masters that can be asked.
func (s *session) answering() (which []int) {
	for i, m := range s.servers {
		if m.PID() != 0 && !s.frozen[i] {
			which = append(which, i)
		}
	}
	return which
}
