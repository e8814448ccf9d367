package sim

import (
	"bufio"
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/proto"

	"github.com/quorumlock/redlock/internal/lab/scene"
	"github.com/quorumlock/redlock/internal/testenv/faultlink"
)

// traffic is the messages that travel on a path, as a viewer sees them. The viewer's mu guards it, except
// writes and shown, which the path's does.
type traffic struct {
	writes  []byte     // what a connection is writing
	answer  scene.Sent // what the master has answered last, without its times; What is empty if there is nothing
	asks    []message  // requests on their way, in order
	answers []message  // replies on their way, in order
	shown   scene.Link // the state that was shown last
}

// message is a message on its way.
type message struct {
	id       int
	due      time.Duration
	commands [][]string // of a request
}

// shows tells the viewer of a message that leaves in a direction now.
func (p *path) shows(d faultlink.Direction, delay time.Duration, lost bool) {
	s := p.show
	if !s.on() {
		return
	}
	op := s.op(p.numbers[0] + 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := scene.Sent{To: "client"}
	var commands [][]string
	if d == faultlink.ToServer {
		sent = scene.Sent{To: "node", Op: op}
		commands = commandsIn(p.traffic.writes)
		sent.What = s.what(commands)
	} else {
		sent, p.traffic.answer = p.traffic.answer, scene.Sent{}
		sent.To = "client"
	}
	if sent.What == "" {
		return
	}
	s.messages++
	sent.ID, sent.Client, sent.Node, sent.Delay, sent.Lost = s.messages, p.numbers[0]+1, p.numbers[1]+1, delay, lost
	s.says(sent)
	if lost {
		return
	}
	m := message{id: sent.ID, due: s.w.now() + delay, commands: commands}
	if d == faultlink.ToServer {
		p.traffic.asks = append(p.traffic.asks, m)
	} else {
		p.traffic.answers = append(p.traffic.answers, m)
	}
}

// losesAnswer reports whether the message that leaves is a reply that an action loses. It is the reply to
// an operation that a viewer sees, so that connections can still be made. mu is held.
func (p *path) losesAnswer(d faultlink.Direction) bool {
	if !p.loseAll || d != faultlink.ToClient || !p.show.on() {
		return false
	}
	p.show.mu.Lock()
	defer p.show.mu.Unlock()
	return p.traffic.answer.What != ""
}

// commandsIn reads the commands of a request.
func commandsIn(request []byte) (commands [][]string) {
	r := bufio.NewReader(bytes.NewReader(request))
	for {
		raw, err := proto.Read(r)
		if err != nil {
			return commands
		}
		command, err := proto.ReadStrings(raw)
		if err != nil || len(command) == 0 {
			return commands
		}
		command[0] = strings.ToUpper(command[0])
		commands = append(commands, command)
	}
}

// what returns the operation of the first command that a viewer wants to see, or "". mu is held.
func (s *show) what(commands [][]string) (what string) {
	for _, command := range commands {
		if o := s.w.order(command); o.verb != "" {
			return o.verb
		}
		if command[0] == "INFO" {
			what = "info"
		}
	}
	return what
}

// arrived shows that a request with this command has arrived, unless an earlier command of it has.
func (s *show) arrived(p *path, command []string) {
	if !s.on() || p == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(p.traffic.asks, func(m message) bool {
		return slices.ContainsFunc(m.commands, func(c []string) bool { return slices.Equal(c, command) })
	})
	if at >= 0 {
		s.says(scene.Arrived{ID: p.traffic.asks[at].id})
		p.traffic.asks = slices.Delete(p.traffic.asks, at, at+1)
	}
}

// answered records what the next reply on a path will say.
func (s *show) answered(p *path, o order, word string) {
	if !s.on() || p == nil {
		return
	}
	vote, _, _ := strings.Cut(word, ":")
	op := s.op(p.numbers[0] + 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	p.traffic.answer = scene.Sent{What: o.verb, Vote: vote, Op: op}
}

// received shows which messages the client has read.
func (p *path) received(b []byte) {
	s := p.show
	if !s.on() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.w.now()
	p.traffic.answers = slices.DeleteFunc(p.traffic.answers, func(m message) bool {
		if m.due > now {
			return false
		}
		s.says(scene.Arrived{ID: m.id})
		return true
	})
	if bytes.Contains(b, []byte(wakePrefix)) && bytes.Contains(b, []byte("\r\nmessage\r\n")) { // published, so it answers no request
		s.messages++
		s.says(scene.Sent{ID: s.messages, Client: p.numbers[0] + 1, Node: p.numbers[1] + 1, To: "client", What: "wake"})
		s.says(scene.Arrived{ID: s.messages})
	}
}

// gone shows that the messages that travel on a path in one direction will not arrive.
func (p *path) gone(d faultlink.Direction) {
	s := p.show
	if !s.on() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := &p.traffic.asks
	if d == faultlink.ToClient {
		lost = &p.traffic.answers
	}
	for _, m := range *lost {
		s.says(scene.Gone{ID: m.id})
	}
	*lost = nil
}

// link shows the state of a path. The path's mu is held.
func (s *show) link(p *path) {
	if !s.on() {
		return
	}
	paused := 0
	if p.stands {
		paused = 1
	}
	l := scene.Link{
		Client: p.numbers[0] + 1, Node: p.numbers[1] + 1,
		Ask: p.held[faultlink.ToServer] > 0, Answer: p.held[faultlink.ToClient] > paused, Loses: p.loseAll || p.loseAsk+p.loseReply > 0, Slow: p.far + p.late, Refused: p.refused > 0,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l != p.traffic.shown && (p.traffic.shown != (scene.Link{}) || l != (scene.Link{Client: l.Client, Node: l.Node})) {
		p.traffic.shown = l
		s.says(l)
	}
}
