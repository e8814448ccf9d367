package main

import (
	"encoding/json"
	"io"
	"time"
)

// printJSON writes one object in one line.
func printJSON(w io.Writer, object any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(object)
}

// micros is a duration that JSON has in whole microseconds.
type micros time.Duration

func (m micros) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(m).Microseconds())
}
