//go:build wasip1

// Command guest is the simulation as WebAssembly: a WASI reactor that package exact and the lab's page
// drive. The host calls _initialize, writes the query of a run into the buffer, and calls begin. If the
// query is a scenario's, it calls advance for each tick of virtual time. What can be seen of the run is
// written to standard output, as package scene describes it.
//
// A history depends on the query, and on which actions come with which call of advance. It is the same on
// every host whose clock and random numbers are those of package exact's.
package main

import (
	"encoding/json"
	"os"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/quorumlock/redlock/internal/lab/scenario"
	"github.com/quorumlock/redlock/internal/lab/scene"
	"github.com/quorumlock/redlock/internal/lab/sim"
)

func main() {} // never called: a reactor has no main

var (
	input [64 << 10]byte
	plays scenario.Scenario
	stage *sim.Stage
)

// buffer returns the address of the buffer for queries and actions, which has 64 KiB.
//
//go:wasmexport buffer
func buffer() unsafe.Pointer { return unsafe.Pointer(&input) }

// begin begins the run whose query is the first n bytes of the buffer. It returns 0 when a scenario
// stands at its beginning, or when a seed of the fault lab has been simulated to its end. It returns 1 if
// there is no such run.
//
//go:wasmexport begin
func begin(n int32) int32 {
	redis.SetLogger(&logging.VoidLogger{})
	config, played, err := sim.ParseQuery(string(input[:n]))
	if err != nil {
		tell(0, scene.Error{Text: err.Error()})
		return 1
	}
	if played != nil {
		plays = *played
		stage = sim.NewStage(plays, tell)
		return 0
	}
	result, err := sim.Show(config, tell)
	if err != nil {
		tell(0, scene.Error{Text: err.Error()})
		return 1
	}
	if err := json.NewEncoder(os.Stdout).Encode(struct {
		Kind   string     `json:"kind"`
		Result sim.Result `json:"result"`
	}{"result", result}); err != nil {
		panic(err)
	}
	return 0
}

// advance performs the actions in the first n bytes of the buffer, which are separated by commas, and
// lets one tick pass. It returns 1 while the scenario goes on, 0 if it is over, and 2 if an action is
// none, in which case no time has passed.
//
//go:wasmexport advance
func advance(n int32) int32 {
	actions, err := plays.ParseActions(string(input[:n]))
	if err != nil {
		tell(0, scene.Error{Text: err.Error()})
		return 2
	}
	if stage == nil {
		return 0
	}
	if !stage.Advance(actions) {
		if err := stage.Close(); err != nil {
			tell(0, scene.Error{Text: err.Error()})
		}
		stage = nil
		return 0
	}
	return 1
}

// tell writes a line to the host.
func tell(at time.Duration, l scene.Line) {
	line, err := scene.Encode(at, l)
	if err == nil {
		_, err = os.Stdout.Write(line)
	}
	if err != nil {
		panic(err)
	}
}
