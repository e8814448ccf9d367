package exact

import "context"

// Module returns the WebAssembly module of the simulation. It needs the source of this module, and the
// Go command.
func Module(ctx context.Context) ([]byte, error) { return build(ctx) }
