// Command guest simulates one seed. Package exact runs it, compiled to WebAssembly: it reads a
// sim.Config as JSON from its standard input, and writes the sim.Result as JSON to its output.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/quorumlock/redlock/internal/lab/sim"
)

func main() {
	redis.SetLogger(&logging.VoidLogger{})
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
}

func run() error {
	var config sim.Config
	if err := json.NewDecoder(os.Stdin).Decode(&config); err != nil {
		return err
	}
	result, err := sim.Run(config)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}
