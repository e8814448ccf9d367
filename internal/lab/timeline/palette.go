package timeline

// paint is the colour of a client, and of text on it.
type paint struct{ fill, ink string }

// The colours of clients are those of Okabe and Ito, which nearly all eyes can tell apart,
// without their vermilion: only violations are red. Two darker colours follow. With more
// clients the colours repeat, but bars also have their client's name.
var paints = []paint{
	{"#56b4e9", "#000000"}, // sky blue
	{"#e69f00", "#000000"}, // orange
	{"#009e73", "#ffffff"}, // bluish green
	{"#cc79a7", "#000000"}, // reddish purple
	{"#0072b2", "#ffffff"}, // blue
	{"#f0e442", "#000000"}, // yellow
	{"#7a4b1e", "#ffffff"}, // brown
	{"#3b3b6d", "#ffffff"}, // indigo
}

const (
	paper     = "#ffffff"
	stripe    = "#f4f5f7"
	ink       = "#1b1f24"
	faint     = "#6b7280"
	grid      = "#dfe2e7"
	rule      = "#b6bcc6"
	alarm     = "#d00000"
	trouble   = "#5b5f97" // faults
	stillness = "#6b7280" // pauses
)

func paintOf(client int) paint {
	if client < 1 {
		return paint{"#9aa0a8", "#000000"} // nobody's
	}
	return paints[(client-1)%len(paints)]
}
