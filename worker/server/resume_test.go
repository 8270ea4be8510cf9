package server_test

import (
	"fmt"
	"slices"
	"testing"

	"roundhouse/worker/api"
)

// cutEverywhere compares a stream that is cut behind every one of its tokens,
// and goes on, with the stream that was not.
func (r *rig) cutEverywhere(path string, body object) {
	r.t.Helper()
	body = with(body, "return_token_ids", true, "stream_options", object{"include_usage": true})
	whole := r.stream(path, body)
	if len(whole) < 3 || whole[len(whole)-1] != nil {
		r.t.Fatalf("the whole stream has %d events and does not end in [DONE]", len(whole))
	}
	id, created := whole[0]["id"].(string), int64(whole[0]["created"].(float64))
	usage := fmt.Sprint(whole[len(whole)-2]["usage"])
	events := whole[:len(whole)-2]
	if d, ok := events[0]["choices"].([]any)[0].(object)["delta"].(object); ok && d["role"] != nil {
		events = events[1:]
	}
	var sent []int32
	for cut := 0; cut <= len(events); cut++ {
		if cut > 0 {
			sent = append(sent, read(events[cut-1]).tokens...)
		}
		got := r.stream(path, with(body, "roundhouse_resume", api.Resume{ID: id, Created: created, TokenIDs: slices.Clone(sent)}))
		r.compare(fmt.Sprintf("cut behind token %d", cut), events[cut:], got, id, usage)
	}
}

// compare holds a resumed stream to the rest of the whole one.
func (r *rig) compare(name string, want, got []object, id, usage string) {
	r.t.Helper()
	if len(got) < 2 || got[len(got)-1] != nil {
		r.t.Fatalf("%s: %d events, and no [DONE]", name, len(got))
	}
	if u := fmt.Sprint(got[len(got)-2]["usage"]); u != usage {
		r.t.Fatalf("%s: usage %s; want %s", name, u, usage)
	}
	got = got[:len(got)-2]
	if len(want) == 0 {
		// All was sent but the end: it is told again, with nothing in it.
		if s := read(got[0]); len(got) != 1 || s.text != "" || s.finish == "" || len(s.tokens) > 0 {
			r.t.Fatalf("%s: got %v; want only the end", name, got)
		}
		return
	}
	if len(got) != len(want) {
		r.t.Fatalf("%s: %d events; want %d", name, len(got), len(want))
	}
	for i := range want {
		g, w := read(got[i]), read(want[i])
		if fmt.Sprint(g) != fmt.Sprint(w) || got[i]["id"] != id {
			r.t.Fatalf("%s, event %d:\n got %+v\nwant %+v", name, i, g, w)
		}
	}
}

// TestResume cuts every kind of stream at every token.
func TestResume(t *testing.T) {
	r := newRig(t, nil)
	chat := object{"messages": []object{{"role": "user", "content": "Count from 1 to 9."}}, "max_tokens": 24, "temperature": 0}
	text := object{"prompt": "one two three", "max_tokens": 24, "temperature": 0}
	for _, c := range []struct {
		name, path string
		body       object
	}{
		{"chat", chats, chat},
		{"completion", texts, text},
		{"seeded", chats, with(chat, "temperature", 1.2, "seed", 7)},
		{"logprobs", chats, with(chat, "logprobs", true, "top_logprobs", 2)},
		{"completion logprobs", texts, with(text, "temperature", 0.8, "seed", 3, "logprobs", 2)},
		{"echo", texts, with(text, "echo", true)},
		{"echo with logprobs", texts, with(text, "echo", true, "logprobs", 1)},
		{"penalties", texts, with(text, "temperature", 1, "seed", 5, "presence_penalty", 0.7, "frequency_penalty", 0.4, "repetition_penalty", 1.2)},
		{"ignore end", texts, with(text, "ignore_eos", true, "min_tokens", 4, "logit_bias", object{"5": 3.5})},
	} {
		t.Run(c.name, func(t *testing.T) {
			sub := *r
			sub.t = t
			sub.cutEverywhere(c.path, c.body)
		})
	}
	t.Run("stop strings", func(t *testing.T) {
		sub := *r
		sub.t = t
		whole := sub.ask(texts, text)["choices"].([]any)[0].(object)["text"].(string)
		runes := []rune(whole)
		for _, at := range []int{3, len(runes) / 3, len(runes) / 2, len(runes) - 6} {
			for _, n := range []int{1, 3, 6} {
				stop := []string{string(runes[at : at+n]), "never there"}
				sub.cutEverywhere(texts, with(text, "stop", stop))
				sub.cutEverywhere(texts, with(text, "stop", stop, "include_stop_str_in_output", true))
			}
		}
	})
	t.Run("stop ids", func(t *testing.T) {
		sub := *r
		sub.t = t
		answer := sub.ask(texts, with(text, "return_token_ids", true))["choices"].([]any)[0].(object)
		ids := answer["token_ids"].([]any)
		for _, at := range []int{0, 5, 20} {
			sub.cutEverywhere(texts, with(text, "stop_token_ids", []any{ids[at]}))
			sub.cutEverywhere(texts, with(text, "stop_token_ids", []any{ids[at]}, "include_stop_str_in_output", true))
		}
	})
}
