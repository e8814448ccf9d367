package timeline

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTextIsWhatXMLCanHold(t *testing.T) {
	var c canvas
	c.element("text", "a\x00b\xffc\uFFFEd<&\n\te", attrs{"x", "\"'"})
	require.Equal(t, "<text x=\"&#34;&#39;\">a\uFFFDb\uFFFDc\uFFFDd&lt;&amp;\n\te</text>\n", c.String())
}
