// Package scene has what can be seen of a run of the fault lab, as it happens: the masters, the clients,
// the links between them and the messages that travel. A run writes it as lines of JSON, which a page
// draws. The state of a thing is complete in each of its lines. So its state at a time is its last line
// until then.
//
// Times are virtual, in nanoseconds since the run began. Clients, masters and operations are counted
// from 1, and 0 is none or an unknown one.
package scene

import (
	"encoding/json"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// Line is anything that can be seen.
type Line interface{ kind() string }

// Encode returns a line as JSON, with its kind and time, and a line break.
func Encode(at time.Duration, l Line) ([]byte, error) {
	head, err := json.Marshal(struct {
		At   time.Duration `json:"at"`
		Kind string        `json:"kind"`
	}{at, l.kind()})
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	line := head[:len(head)-1]
	if len(body) > len("{}") {
		line = append(append(line, ','), body[1:len(body)-1]...)
	}
	return append(line, '}', '\n'), nil
}

// Begin is the first line.
type Begin struct {
	Mode    string        `json:"mode"` // "scenario" or "sim"
	Nodes   int           `json:"nodes"`
	Clients int           `json:"clients"`
	Quorum  int           `json:"quorum"`
	Tick    time.Duration `json:"tick"` // 0 for a sim
	TTL     time.Duration `json:"ttl"`
	Timeout time.Duration `json:"timeout"`
	Latency time.Duration `json:"latency"`
	Fencing bool          `json:"fencing"`
	Guard   time.Duration `json:"guard"` // 0: off
	Fair    bool          `json:"fair"`
	Slots   int           `json:"slots"`
	Seed    string        `json:"seed"` // a string because it may be above 2^53
	Command string        `json:"command"`
	Text    string        `json:"text"`
}

// Error says why there is no run.
type Error struct {
	Text string `json:"text"`
}

// Master is the state of a master.
type Master struct {
	Node    int           `json:"node"`
	Up      bool          `json:"up"`
	Hung    bool          `json:"hung"`
	Role    string        `json:"role"`    // a fault of a sim that it has now
	Jumped  time.Duration `json:"jumped"`  // how far its clock was set
	Guarded time.Duration `json:"guarded"` // until when its votes do not count
	Forgot  int           `json:"forgot"`  // how often it has lost its memory
	Keys    []Key         `json:"keys"`
	Fences  []Fence       `json:"fences"`
	Queues  []Queue       `json:"queues"`
}

// Key is a key that a master has.
type Key struct {
	Key    string        `json:"key"`
	Client int           `json:"client"`
	Op     int           `json:"op"`
	Until  time.Duration `json:"until"`
}

// Fence is the highest token that a master has granted for a key.
type Fence struct {
	Key   string `json:"key"`
	Token int64  `json:"token"`
}

// Queue is the queue of a key on a master, in order.
type Queue struct {
	Key     string `json:"key"`
	Clients []int  `json:"clients"`
}

// The states of a client.
const (
	Idle      = "idle"
	Asking    = "asking"
	Waiting   = "waiting" // the lock was taken, or there was no majority
	Holding   = "holding"
	Extending = "extending"
	Releasing = "releasing"
	Dead      = "dead"
)

// Client is what a client believes.
type Client struct {
	Client    int     `json:"client"`
	State     string  `json:"state"`
	Paused    bool    `json:"paused"`
	Suspended bool    `json:"suspended"`
	Working   bool    `json:"working"` // by itself
	Writing   bool    `json:"writing"` // it works towards a write to the resource
	Locks     []Lock  `json:"locks"`
	Asking    *Ballot `json:"asking,omitempty"`
	Last      string  `json:"last"` // the last result in words
}

// Lock is a lock that a client has or had last.
type Lock struct {
	Op      int           `json:"op"`
	Key     string        `json:"key"`
	Since   time.Duration `json:"since"`
	Until   time.Duration `json:"until"` // the end of its validity, as the client believes
	Token   int64         `json:"token"`
	Kept    bool          `json:"kept"`    // KeepAlive renews it
	Context string        `json:"context"` // "alive", or "done: " and why
}

// Ballot is an operation under way, and the votes that its client knows.
type Ballot struct {
	Op      int      `json:"op"`
	Key     string   `json:"key"`
	Verb    string   `json:"verb"`
	Votes   []string `json:"votes"` // by master: granted, refused, failed, or empty
	Granted int      `json:"granted"`
	Need    int      `json:"need"`
}

// Link is the state of the link between a client and a master.
type Link struct {
	Client  int           `json:"client"`
	Node    int           `json:"node"`
	Ask     bool          `json:"ask"`    // requests do not pass
	Answer  bool          `json:"answer"` // replies do not pass
	Loses   bool          `json:"loses"`
	Slow    time.Duration `json:"slow"`
	Refused bool          `json:"refused"` // the master refuses the client's connections
}

// Sent is a message that begins to travel. It arrives Delay later, unless it is lost or something holds
// it up. Arrived says when it does.
type Sent struct {
	ID     int           `json:"id"`
	Client int           `json:"client"`
	Node   int           `json:"node"`
	To     string        `json:"to"` // "node" or "client"
	Delay  time.Duration `json:"delay"`
	Lost   bool          `json:"lost"`
	What   string        `json:"what"`
	Op     int           `json:"op"`
	Vote   string        `json:"vote,omitempty"` // of a reply: granted, refused or failed
}

// Arrived is the end of a message's way.
type Arrived struct {
	ID int `json:"id"`
}

// Gone says that a message will never arrive.
type Gone struct {
	ID int `json:"id"`
}

// Resource is the state of the protected resource.
type Resource struct {
	Highest int64   `json:"highest"` // the highest token that it has seen
	Writes  []Write `json:"writes"`  // the last ones
}

// Write is a write that reached the protected resource.
type Write struct {
	At       time.Duration `json:"at"`
	Client   int           `json:"client"`
	Token    int64         `json:"token"`
	Accepted bool          `json:"accepted"`
	Stale    bool          `json:"stale"` // another client had got the lock since
}

// Event is an event of the history.
type Event struct {
	Event history.Event `json:"event"`
	Line  string        `json:"line"`
}

// Violation is a broken rule.
type Violation struct {
	Rule    string `json:"rule"`
	Text    string `json:"text"`
	Clients []int  `json:"clients"`
	Locks   []Hold `json:"locks"`
	Excused string `json:"excused"` // why Redlock does not promise this; empty if it does
	Remedy  string `json:"remedy"`
}

// Hold is a lock that a violation is about.
type Hold struct {
	Client int           `json:"client"`
	Op     int           `json:"op"`
	From   time.Duration `json:"from"`
	Until  time.Duration `json:"until"`
}

// Over is the end of a sim.
type Over struct {
	Fingerprint string   `json:"fingerprint"`
	Asked       int      `json:"asked"`
	Granted     int      `json:"granted"`
	Checked     []string `json:"checked"`
}

func (Begin) kind() string     { return "begin" }
func (Error) kind() string     { return "error" }
func (Master) kind() string    { return "master" }
func (Client) kind() string    { return "client" }
func (Link) kind() string      { return "link" }
func (Sent) kind() string      { return "sent" }
func (Arrived) kind() string   { return "arrived" }
func (Gone) kind() string      { return "gone" }
func (Resource) kind() string  { return "resource" }
func (Event) kind() string     { return "event" }
func (Violation) kind() string { return "violation" }
func (Over) kind() string      { return "over" }
