package cli

import (
	"encoding/json"
	"io"
	"time"
)

// PrintJSON writes one object on one line.
func PrintJSON(w io.Writer, object any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(object)
}

// Micros is a duration that JSON shows in whole microseconds.
type Micros time.Duration

func (m Micros) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(m).Microseconds())
}
