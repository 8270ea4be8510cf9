package said

import (
	"bytes"
	"strings"
	"testing"

	"roundhouse/balancer/sim/recorded"
)

// Every recorded stream is whole; one of which an event is missing, doubled or
// an error is not, or differs.
func TestSaid(t *testing.T) {
	for _, release := range []string{recorded.New, recorded.Old} {
		all, err := recorded.All(release)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(release, func(t *testing.T) { testSaid(t, all) })
	}
}

func testSaid(t *testing.T, all map[string]recorded.Exchange) {
	for name, e := range all {
		if !strings.HasSuffix(name, ".stream") {
			continue
		}
		read := func(answer []byte) *Said { return Read(e.Path, 200, bytes.NewReader(answer), func(*Said) {}) }
		s := read(e.Answer)
		if err := s.Whole(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if cut := read(e.Answer[:len(e.Answer)*2/3]); cut.Whole() == nil {
			t.Errorf("%s: a stream that was cut counts as whole", name)
		}
		if strings.Contains(name, "tools") {
			continue // few events, and not all of them with text
		}
		events := bytes.SplitAfter(e.Answer, []byte("\n\n"))
		at := len(events) / 3
		for bytes.Contains(events[at], []byte(`:""`)) || bytes.Contains(events[at], []byte(`"choices":[]`)) {
			at++
		}
		for what, with := range map[string][]byte{"missing": nil, "doubled": bytes.Repeat(events[at], 2)} {
			other := bytes.Join([][]byte{bytes.Join(events[:at], nil), with, bytes.Join(events[at+1:], nil)}, nil)
			if got := read(other); got.Whole() == nil && got.Differs(s) == nil {
				t.Errorf("%s: the event %s is %s, and nobody sees it", name, events[at], what)
			}
		}
		if failed := read(append([]byte("data: {\"error\":{\"message\":\"x\"}}\n\n"), events[0]...)); !failed.Clean() {
			t.Errorf("%s: an error event and nothing behind it is not seen as such", name)
		}
	}
}
