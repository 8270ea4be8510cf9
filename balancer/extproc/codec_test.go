package extproc

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// sample is the first message of a request, with all that a picker reads.
func sample() []byte {
	field := func(name, value string, at protowire.Number) []byte {
		return appendMessage(nil, 1, appendMessage(appendMessage(nil, 1, []byte(name)), at, []byte(value)))
	}
	head := append(field(":path", "/v1/chat/completions?x=1", 3), field("X-LLM-D-Inference-Objective", "batch", 2)...)
	b := appendMessage(nil, 2, appendNumber(appendMessage(nil, 1, head), 3, 1))
	values := appendMessage(appendMessage(nil, 1, appendMessage(nil, 3, []byte("10.0.0.1:80, 10.0.0.2:80"))), 1, appendMessage(nil, 3, []byte("[::1]:80")))
	metadata := appendMessage(nil, 1, appendMessage(appendMessage(nil, 1, []byte(subsetNamespace)), 2, structOf(subset, appendMessage(nil, 6, values))))
	metadata = appendMessage(metadata, 1, appendMessage(appendMessage(nil, 1, []byte(lbNamespace)), 2, structOf(served, appendMessage(nil, 3, []byte("10.0.0.3:80")))))
	b = appendMessage(b, 8, metadata)
	return appendMessage(b, 11, appendNumber(appendNumber(nil, 1, bodyDuplex), 2, bodyBuffered))
}

// TestDecode reads all that a picker needs of a message.
func TestDecode(t *testing.T) {
	var m message
	if err := m.decode(sample()); err != nil {
		t.Fatal(err)
	}
	var h Head
	h.read(m.fields)
	if m.kind != requestHeaders || !m.end || h.Path != "/v1/chat/completions" || h.Query != "x=1" || h.Objective != "batch" || m.served != "10.0.0.3:80" ||
		!m.hasSubset || !reflect.DeepEqual(m.subset, []string{"10.0.0.1:80", "10.0.0.2:80", "[::1]:80"}) || *m.modes != (modes{bodyDuplex, bodyBuffered}) {
		t.Errorf("got %+v, %+v", m, h)
	}
}

// TestBothNames reads a field under its present name before its former one.
func TestBothNames(t *testing.T) {
	now, before := [2]string{fairnessFields[0], "now"}, [2]string{fairnessFields[1], "before"}
	for want, fields := range map[string][][2]string{"now": {before, now}, "before": {before}, "": {{"fairness", "no"}}} {
		if got := either(fields, fairnessFields); got != want {
			t.Errorf("of %v was read %q", fields, got)
		}
	}
}

// FuzzDecode reads whatever a gateway sends: it is read or refused, and what was read
// once is read alike again.
func FuzzDecode(f *testing.F) {
	f.Add(sample())
	f.Add(appendMessage(nil, 4, appendNumber(appendMessage(nil, 1, []byte("body")), 2, 1)))
	f.Add(appendMessage(nil, 8, appendMessage(nil, 1, []byte{0x12, 0x7f})))
	f.Add([]byte{0x22, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		var one, two message
		if err := one.decode(b); err != nil {
			return
		}
		if len(one.body) > len(b) {
			t.Error("a body is longer than its message")
		}
		if err := two.decode(b); err != nil || !reflect.DeepEqual(one, two) {
			t.Errorf("read again: %v, %+v, %+v", err, one, two)
		}
	})
}
