package resume

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"roundhouse/balancer/wire"
)

// abort is what of an answer comes if it is aborted behind so many bytes: the events up
// to there, and the end as vLLM 0.32 says it when it is terminated. It reports whether
// the answer was not over by then.
func abort(api API, text string, n int) (string, bool) {
	var events []string
	at := 0
	for at < len(text) && at+wire.NextEvent([]byte(text[at:])) <= n {
		events = append(events, text[at:at+wire.NextEvent([]byte(text[at:]))])
		at += len(events[len(events)-1])
	}
	said := text[:at]
	end := ""
	switch {
	case len(events) == 0:
		return "", false // it only breaks off
	case api == Messages:
		if strings.Contains(said, "event: message_delta") {
			return said, false
		}
		if blocks := strings.Count(said, "event: content_block_start"); blocks > strings.Count(said, "event: content_block_stop") {
			end = fmt.Sprintf("event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":%d}\n\n", blocks-1)
		}
		end += "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":null,\"stop_sequence\":null},\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}\n\n" +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	case api == Responses:
		if strings.Contains(said, "event: response.completed") {
			return said, false
		}
		if items := strings.Count(said, "event: response.output_item.added"); items > strings.Count(said, "event: response.output_item.done") {
			end = fmt.Sprintf("event: response.output_text.done\ndata: {\"content_index\":0,\"text\":\"cut\",\"output_index\":%d,\"sequence_number\":%d,\"type\":\"response.output_text.done\"}\n\n", items-1, len(events)) +
				fmt.Sprintf("event: response.output_item.done\ndata: {\"output_index\":%d,\"sequence_number\":%d,\"type\":\"response.output_item.done\"}\n\n", items-1, len(events)+1)
		}
		end += fmt.Sprintf("event: response.completed\ndata: {\"response\":{\"id\":\"resp_x\",\"metadata\":{\"status\":\"completed\"},\"status\":\"cancelled\"},\"sequence_number\":%d,\"type\":\"response.completed\"}\n\n", len(events)+2)
	default:
		for _, i := range unended(text, said) {
			end += fmt.Sprintf("data: {\"id\":\"x\",\"choices\":[{\"index\":%d,\"delta\":{},\"text\":\"\",\"finish_reason\":\"abort\",\"stop_reason\":null,\"token_ids\":[]}]}\n\n", i)
		}
		if end == "" {
			return said, false
		}
		end += "data: [DONE]\n\n"
	}
	return said + end, true
}

// unended are the choices of a text, those left out that end in its beginning.
func unended(text, said string) (left []int) {
	indices := func(text string, want func(finish *string) bool) (list []int) {
		for event := range strings.SplitSeq(text, "\n\n") {
			var e struct {
				Choices []struct {
					Index  int     `json:"index"`
					Finish *string `json:"finish_reason"`
				} `json:"choices"`
			}
			data, _ := wire.EventData([]byte(event + "\n\n"))
			if json.Unmarshal(data, &e) != nil {
				continue // the mark behind the last
			}
			for _, c := range e.Choices {
				if want(c.Finish) && !slices.Contains(list, c.Index) {
					list = append(list, c.Index)
				}
			}
		}
		return list
	}
	over := indices(said, func(finish *string) bool { return finish != nil })
	all := indices(text, func(*string) bool { return true })
	return slices.DeleteFunc(all, func(i int) bool { return slices.Contains(over, i) })
}

// TestAborted has a server that is terminated abort the answer behind every event: it
// goes on elsewhere, and the client gets what it would have got without. An answer
// without a way on ends with an error.
func TestAborted(t *testing.T) {
	for _, k := range kinds() {
		if k.worker.own {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			want, sent := uncut(t, k, 0)
			other, _ := uncut(t, k, 1)
			for at := range len(sent) {
				if !strings.HasSuffix(sent[:at], "\n\n") {
					continue
				}
				r := begin(k)
				whole, err := r.live([]int{at + abortBit}, nil)
				if err == nil && whole {
					err = same(t, k.api, [][]byte{want, other}[r.from], r.out)
				}
				if err != nil || !whole {
					t.Fatalf("aborted behind %d bytes of %d, ways %v: whole %v, %v\n%s", at, len(sent), r.ways, whole, err, r.out)
				}
			}
		})
	}
}

// TestAbortStands has ends that look like an abort, and stand.
func TestAbortStands(t *testing.T) {
	ask := func(api API, own bool, sent string) (*run, error) {
		r := begin(kind{api: api, body: chatBody, worker: fake{own: own}})
		return r, r.feed(sent, nil)
	}
	chat := func(finish, content string) string {
		return fmt.Sprintf("data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":%s}]}\n\ndata: [DONE]\n\n", content, finish)
	}
	f := func(name string, api API, own bool, sent string, stands bool) {
		t.Helper()
		r, err := ask(api, own, sent)
		if stands && (err != nil || !r.s.Ended()) || !stands && !errors.Is(err, ErrEvent) {
			t.Errorf("%s: ended %v, %v: %s", name, r.s.Ended(), err, r.out)
		}
	}
	f("a chat", Chat, false, chat(`"abort"`, ""), false)
	f("our worker's", Chat, true, chat(`"abort"`, ""), true)
	f("in spaces", Chat, false, strings.ReplaceAll(chat(`"abort"`, ""), `":`, `": `), false)
	f("a text that says so", Chat, false, chat(`"stop"`, `"finish_reason":"abort"`), true)
	f("the word alone", Chat, false, chat(`"stop"`, "abort"), true)
	f("a text", Text, false, strings.Replace(chat(`"abort"`, ""), "delta", "text", 1), false)
	response := func(more string) string {
		return "event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":0,\"response\":{\"id\":\"resp_x\"," + more + "}}\n\n"
	}
	f("a response", Responses, false, response(`"status":"cancelled"`), false)
	f("a response about others", Responses, false, response(`"metadata":{"status":"cancelled"},"status":"completed"`), true)

	// What a gateway passes on may end without an event, and what is stored may have been
	// cancelled.
	for api, sent := range map[API]string{Chat: chat(`"abort"`, ""), Responses: response(`"status":"cancelled"`)} {
		r := begin(kind{api: api, body: chatBody})
		r.s.a.Open = true
		if err := r.feed(sent, nil); errors.Is(err, ErrEvent) != (api == Chat) {
			t.Errorf("%v: %v", api, err)
		}
	}

	// Whose answers end without a reason at every worker, ends them so.
	k := kind{api: Messages, body: chatBody, worker: fake{words: 4}}
	want, sent := uncut(t, k, 0)
	bare := func(name string) string {
		f := k.worker
		f.name = name
		return strings.Replace(f.serve(Messages, []byte("{"+k.body+"}"), nil), `"end_turn"`, "null", 1)
	}
	r := begin(k)
	if err := r.feed(bare("one"), nil); !errors.Is(err, ErrEvent) {
		t.Fatalf("no reason is an end: %v\n%s", err, sent)
	}
	if !r.s.Broke([]byte("{"+k.body+"}"), 0) || r.s.Way() != Again {
		t.Fatal("it does not go on")
	}
	if err := r.feed(bare("two22"), nil); err != nil || !r.s.Ended() {
		t.Fatalf("ended %v, %v", r.s.Ended(), err)
	}
	if got := strings.Replace(string(r.out), `"stop_reason":null`, `"stop_reason":"end_turn"`, 1); got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestAbortedWhole looks at whole answers.
func TestAbortedWhole(t *testing.T) {
	f := func(name string, api API, body string, second, want bool) {
		t.Helper()
		if got := Aborted(api, []byte(body), second); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	chat := `{"choices":[{"index":0,"message":{"content":"\"finish_reason\":\"abort\""},"finish_reason":"stop"},{"index":1,"message":{"content":"abort"},"finish_reason":%s}]}`
	f("a chat", Chat, fmt.Sprintf(chat, `"abort"`), false, true)
	f("a chat at the second", Chat, fmt.Sprintf(chat, `"abort"`), true, true)
	f("a chat that ended", Chat, fmt.Sprintf(chat, `"stop"`), false, false)
	f("no JSON", Chat, `"abort"`, false, false)
	f("a text", Text, `{"choices":[{"index":0,"text":"","finish_reason": "abort"}]}`, false, true)
	message := `{"id":"x","type":"message","role":"assistant","content":[{"type":"text","text":"stop_reason"}],"model":"m"%s,"usage":{}}`
	f("messages", Messages, fmt.Sprintf(message, ""), false, true)
	f("messages, null", Messages, fmt.Sprintf(message, `,"stop_reason":null`), false, true)
	f("messages at the second", Messages, fmt.Sprintf(message, ""), true, false)
	f("messages without a word at the second", Messages, `{"type":"message","content":[],"stop_reason":null}`, true, true)
	f("messages that ended", Messages, fmt.Sprintf(message, `,"stop_reason":"end_turn"`), false, false)
	f("a count of tokens", Messages, `{"input_tokens":3}`, false, false)
	f("a response", Responses, `{"metadata":{"status":"completed"},"status":"cancelled"}`, false, true)
	f("a response about others", Responses, `{"metadata":{"status":"cancelled"},"status":"completed"}`, false, false)
	f("what passes", Other, fmt.Sprintf(chat, `"abort"`), false, false)
}
