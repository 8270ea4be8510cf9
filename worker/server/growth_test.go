package server

import (
	"encoding/json"
	"runtime"
	"testing"
)

// What it costs to gather an answer, or to tell it in pieces, grows with its length and
// no faster.
func TestLongAnswers(t *testing.T) {
	f := func(name string, run func(n int)) {
		t.Helper()
		cost := func(n int) uint64 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			run(n)
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		if once, twice := cost(2000), cost(4000); twice > 3*once+100_000 {
			t.Errorf("%s: %d bytes for 2000 pieces, %d for 4000", name, once, twice)
		}
	}
	word := "word "
	text, thought := chatDelta{Content: &word}, chatDelta{Reasoning: &word}
	call := func(i int) chatDelta {
		d := chatDelta{ToolCalls: []toolDelta{{Function: functionDelta{Arguments: &word}}}}
		if i == 0 {
			d.ToolCalls[0].ID, d.ToolCalls[0].Function.Name = callPrefix+"1", "f"
		}
		return d
	}
	deltas := map[string]func(i int) chatDelta{"text": func(int) chatDelta { return text }, "thoughts": func(int) chatDelta { return thought }, "a call": call}
	quiet := func(string, map[string]any) error { return nil }
	for name, delta := range deltas {
		f("a chat of "+name, func(n int) {
			var g gathered
			for i := range n {
				g.add(delta(i))
			}
			g.message("assistant", "")
		})
		f("a message of "+name, func(n int) {
			b := &blocks{tell: quiet}
			for i := range n {
				_ = b.add(delta(i)) // nobody listens
			}
			_ = b.finish()
		})
		f("a response of "+name, func(n int) {
			it := &responseItems{x: &response{chat: &chat{job: &job{}}, f: &responsesRequest{}}, tell: quiet}
			for i := range n {
				_ = it.add(delta(i))
			}
			_ = it.shut()
		})
	}
	f("a completion", func(n int) {
		var g completed
		for range n {
			g.add(&update{text: word, token: -1})
		}
	})
	for _, piece := range []string{" ", `\n`} {
		f("a custom tool's call of "+piece, func(n int) {
			var c customText
			for i := range n {
				if i == n/2 {
					c.add(`{"input":"`)
				}
				c.add(piece)
			}
		})
	}
	f("a system prompt in pieces", func(n int) {
		piece := json.RawMessage(`{"role":"system","content":"word "}`)
		list := []json.RawMessage{json.RawMessage(`{"role":"user","content":"x"}`)}
		for range n {
			list = append(list, piece)
		}
		if _, err := messagesInput(&messagesRequest{Messages: marshalled(list)}, true); err != nil {
			t.Fatal(err)
		}
	})
}
