package parser

import (
	"encoding/json"
	"math/rand"
	"os"
	"reflect"
	"strings"
	"testing"
)

// streamed is what the deltas of an output come to.
type streamed struct {
	Reasoning, Content string
	Calls              [][2]string
	Error              string
}

func (s *streamed) same(w *streamed) bool {
	if s.Reasoning != w.Reasoning || s.Content != w.Content || len(s.Calls) != len(w.Calls) || s.Error != w.Error {
		return false
	}
	for i := range s.Calls {
		var got, want any
		if s.Calls[i][0] != w.Calls[i][0] || json.Unmarshal([]byte(s.Calls[i][1]), &got) != nil ||
			json.Unmarshal([]byte(w.Calls[i][1]), &want) != nil || !reflect.DeepEqual(got, want) {
			return false
		}
	}
	return true
}

// notStreamed are vLLM's parsers that pass calls behind content on as content while they
// stream, and find them in whole texts.
var notStreamed = map[string]bool{"hunyuan_a13b": true}

// TestStreams holds the deltas to those of vLLM's own parsers over random cuttings of the
// same outputs (testdata/streams.py). Where vLLM's depend on the cutting, ours is what
// vLLM makes of the whole text, which TestVectors holds.
func TestStreams(t *testing.T) {
	var rows []struct {
		Kind, Parser, Text string
		Answers            []streamed
	}
	var outputs struct {
		Tools []struct {
			Name       string
			Parameters json.RawMessage
		}
	}
	for name, into := range map[string]any{"streams": &rows, "outputs": &outputs} {
		data, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, into); err != nil {
			t.Fatal(err)
		}
	}
	if len(rows) < 70 {
		t.Fatalf("%d rows", len(rows))
	}
	var tools []Tool
	for _, f := range outputs.Tools {
		tools = append(tools, Tool{f.Name, f.Parameters})
	}
	r := rand.New(rand.NewSource(1))
	for _, row := range rows {
		if len(row.Answers) > 1 {
			continue
		}
		o := Options{Reasoning: row.Parser}
		if strings.HasPrefix(row.Kind, "tools") {
			o = Options{Tools: row.Parser, Offered: tools}
		}
		w := parse(t, o, split(r, row.Text)...)
		got := streamed{Reasoning: w.reasoning, Content: w.content}
		for _, c := range w.calls {
			got.Calls = append(got.Calls, [2]string{c.Name, c.Arguments})
		}
		want := row.Answers[0]
		tight := want // a line break before a call is no content in whole texts, and is none here
		if len(want.Calls) > 0 {
			tight.Content = strings.TrimRight(want.Content, "\n")
		}
		if len(want.Calls) == 0 && notStreamed[row.Parser] {
			continue
		}
		if !got.same(&want) && !got.same(&tight) {
			t.Errorf("%s: %q\ngives %q\nvLLM: %q", row.Parser, row.Text, got, want)
		}
	}
}
