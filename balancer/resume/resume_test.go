package resume

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"roundhouse/balancer/wire"
)

// kind is a stream of some kind and its workers.
type kind struct {
	name    string
	api     API
	body    string
	worker  fake
	second  func(*fake) // what is other at the workers behind the first
	end     string      // the marker that the door knows
	context int64
	never   bool // it cannot be resumed once it has begun
}

const chatBody, textBody = `"stream":true,"model":"m","max_tokens":40,"messages":[{"role":"user","content":"x"}]`, `"stream":true,"model":"m","max_tokens":40`

// kinds are the streams that the tests cut.
func kinds() []kind {
	few := func(f *fake) { f.each = 3 }
	one := func(f *fake) { f.each = 1 }
	plain := fake{words: 6}
	return []kind{
		{name: "chat", api: Chat, body: chatBody, worker: plain},
		{name: "chat, no limit", api: Chat, body: `"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]`, worker: plain, context: 100},
		{name: "chat, no limit, no context", api: Chat, body: `"stream":true,"messages":[{"role":"user","content":"x"}]`, worker: plain},
		{name: "chat, usage", api: Chat, body: chatBody + `,"stream_options":{"include_usage":true}`, worker: plain},
		{name: "chat, usage at each event", api: Chat, body: chatBody + `,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`, worker: plain},
		{name: "chat, three tokens an event", api: Chat, body: chatBody, worker: fake{words: 8, each: 3}},
		{name: "chat, halves", api: Chat, body: chatBody, worker: fake{words: 8, halves: true}},
		{name: "chat, stop", api: Chat, body: chatBody + `,"stop":"STOP"`, worker: plain},
		{name: "chat, ids asked", api: Chat, body: chatBody + `,"return_token_ids":true`, worker: plain, second: few},
		{name: "chat, ids not known", api: Chat, body: chatBody, worker: fake{words: 8, noIDs: true, each: 2}, second: few},
		{name: "chat, reasoning, marker known", api: Chat, body: chatBody, worker: fake{words: 8, thought: 4, field: "reasoning", marker: "</t>"}, end: "</t>"},
		{name: "chat, old reasoning, marker known", api: Chat, body: chatBody, worker: fake{words: 8, thought: 4, field: "reasoning_content", marker: "</t>"}, end: "</t>"},
		{name: "chat, reasoning, marker not known", api: Chat, body: chatBody, worker: fake{words: 8, thought: 4, field: "reasoning", marker: "</t>"}, second: few},
		{name: "chat, n=3", api: Chat, body: chatBody + `,"n":3`, worker: plain},
		{name: "chat, n=3, usage, short", api: Chat, body: strings.Replace(chatBody, "40", "5", 1) + `,"n":3,"stream_options":{"include_usage":true}`, worker: plain},
		{name: "chat, n=2, seed", api: Chat, body: chatBody + `,"n":2,"seed":1,"logprobs":true`, worker: plain, second: few},
		{name: "chat, logprobs", api: Chat, body: chatBody + `,"logprobs":true,"temperature":0`, worker: fake{words: 8, halves: true}, second: few},
		{name: "chat, logprobs, other way round", api: Chat, body: chatBody + `,"logprobs":true,"temperature":0`, worker: fake{words: 8, halves: true, each: 3}, second: one},
		{name: "chat, penalties at nothing", api: Chat, body: chatBody + `,"presence_penalty":0,"frequency_penalty":0.0,"repetition_penalty":1,"min_tokens":null`, worker: plain},
		{name: "chat, penalties", api: Chat, body: chatBody + `,"presence_penalty":0.5`, worker: plain, second: few},
		{name: "chat, picture", api: Chat, body: `"stream":true,"max_tokens":40,"messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:"}}]}]`, worker: plain, second: few},
		{name: "chat, tools", api: Chat, body: chatBody + `,"tools":[{"type":"function"}]`, worker: fake{words: 8, calls: 2}},
		{name: "chat, tools, cut otherwise", api: Chat, body: chatBody + `,"tools":[{"type":"function"}]`, worker: fake{words: 8, calls: 1}, second: few},
		{name: "chat, schema", api: Chat, body: chatBody + `,"response_format":{"type":"json_schema","json_schema":{"properties":{"text":{}}}}`, worker: plain, second: few},
		{name: "text", api: Text, body: textBody + `,"prompt":"x"`, worker: plain},
		{name: "text by ids", api: Text, body: textBody + `,"prompt":[1,2,3]`, worker: plain},
		{name: "text, no limit", api: Text, body: `"stream":true,"prompt":"x"`, worker: plain},
		{name: "text, stop", api: Text, body: textBody + `,"prompt":"x","stop":"ABCDEFGH"`, worker: fake{words: 8}},
		{name: "text, prompts", api: Text, body: textBody + `,"prompt":["x","y"],"stream_options":{"include_usage":true}`, worker: plain},
		{name: "text, prompts by ids, n=2", api: Text, body: textBody + `,"prompt":[[1,2],[3]],"n":2,"stream_options":{"include_usage":true}`, worker: plain},
		{name: "text, echo", api: Text, body: textBody + `,"prompt":"x","echo":true`, worker: plain, second: few},
		{name: "text, logprobs", api: Text, body: textBody + `,"prompt":"x","logprobs":2`, worker: plain, second: few},
		{name: "ours, chat", api: Chat, body: chatBody + `,"tools":[{"type":"function"}]`, worker: fake{words: 6, own: true}},
		{name: "ours, text, usage", api: Text, body: textBody + `,"prompt":"x","stream_options":{"include_usage":true}`, worker: fake{words: 6, own: true}},
		{name: "ours, n=2", api: Chat, body: chatBody + `,"n":2`, worker: fake{words: 6, own: true}},
		{name: "messages", api: Messages, body: chatBody, worker: fake{words: 4}, second: few},
		{name: "messages, other way round", api: Messages, body: chatBody, worker: fake{words: 5, each: 3}, second: one},
		{name: "responses", api: Responses, body: chatBody, worker: fake{words: 4}, second: few},
		{name: "responses, other way round", api: Responses, body: chatBody, worker: fake{words: 5, each: 3}, second: one},
	}
}

// run is one stream under way.
type run struct {
	kind
	s     Stream
	out   []byte
	ways  []Way
	names []string // of the workers
	from  int      // the one that the client's answer began with

	aborted bool // by one of them
}

// workers are the names of one worker after the other.
var workers = []string{"one", "two22", "three3333", "four44444444", "five"}

func begin(k kind) *run {
	r := &run{kind: k, names: workers}
	body := []byte("{" + k.body + "}")
	var p wire.Peek
	if err := wire.PeekBody(body, &p); err != nil {
		panic(err)
	}
	r.s.Open(Asked{API: k.api, Peek: &p, Body: body, Model: "m", End: k.end, Enabled: !k.never, Context: k.context})
	return r
}

// ask is the answer of a worker to the request that the stream makes now.
func (r *run) ask(name string, first bool) string {
	f := r.worker
	f.name = name
	if !first && r.second != nil {
		r.second(&f)
	}
	if r.s.Way() == ByIDs {
		n := r.s.Next()
		if n.Path != "/v1/completions" {
			panic(n.Path)
		}
		return f.serve(Text, n.Body, nil)
	}
	var m map[string]any
	if err := json.Unmarshal([]byte("{"+r.body+"}"), &m); err != nil {
		panic(err)
	}
	if r.s.IDs() {
		m["return_token_ids"] = true
		if o, ok := m["stream_options"].(map[string]any); ok {
			o["include_usage"] = true
		} else {
			m["stream_options"] = map[string]any{"include_usage": true}
		}
	}
	var field *resumed
	if r.s.Way() == ByField {
		field = &resumed{r.s.Field().TokenIDs}
		f.name = r.names[r.from] // it takes the id that it is told
	}
	return f.serve(r.api, mustJSON(m), field)
}

// feed gives the stream bytes of a worker, cut after each of the lengths in turn.
func (r *run) feed(text string, cuts []byte) error {
	r.ways = append(r.ways, r.s.Way())
	r.s.Feed(r.worker.own)
	b := []byte(text)
	for i := 0; len(b) > 0; i++ {
		n := len(b)
		if len(cuts) > 0 {
			n = min(n, int(cuts[i%len(cuts)])+1)
		}
		var o Out
		got, err := r.s.Take(&o, append([]byte(nil), b[:n]...))
		r.out = append(r.out, o.B...)
		if got.Events == 0 && len(o.B) > 0 {
			panic("bytes without an event")
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// abortBit, added to a number of bytes, has a worker abort its answer there.
const abortBit = 1 << 15

// live carries the stream through workers that die after so many bytes each, or abort
// the answer, and a last that does not. It reports whether the answer came whole.
func (r *run) live(deaths []int, cuts []byte) (whole bool, err error) {
	for i := 0; ; i++ {
		if r.s.Way() == Anew {
			r.from = i
		}
		text := r.ask(r.names[i], i == 0)
		die := i < len(deaths) && deaths[i]%abortBit < len(text)
		// Messages that two servers abort at the same place end there.
		cut := die && deaths[i] >= abortBit && !r.worker.own && !(r.api == Messages && r.aborted)
		if cut {
			text, cut = abort(r.api, text, deaths[i]%abortBit)
			r.aborted = r.aborted || cut
		} else if die {
			text = text[:deaths[i]%abortBit]
		}
		if err := r.feed(text, cuts); err != nil && !(cut && errors.Is(err, ErrEvent)) {
			return false, err
		} else if err == nil && cut {
			return false, fmt.Errorf("an abort is taken for the end: %q", text)
		}
		if r.s.Done() || r.api > Text && r.s.Ended() {
			return true, nil
		}
		if !die {
			return false, fmt.Errorf("the worker said all and the answer has not ended, way %d: %q", r.s.Way(), text)
		}
		var o Out
		if r.s.Close(&o) {
			r.out = append(r.out, o.B...)
			return true, nil
		}
		if !r.s.Broke([]byte("{"+r.body+"}"), r.context) {
			return false, nil
		}
	}
}

// hearing is what a client has understood of an answer: by choice and field its
// text and its numbers, however it was cut into events.
type hearing map[string]string

var drawn = regexp.MustCompile(`(resp_|item_|msg_|rs_|fc_|call_|toolu_|chatcmpl-tool-|chatcmpl-)[0-9a-z]+`)

// canon numbers the ids in a text in the order in which they came: which they are
// is nobody's promise, but that one thing has one id.
func (m hearing) canon(text string) string {
	return drawn.ReplaceAllStringFunc(text, func(id string) string {
		key := "id " + id
		if m[key] == "" {
			m["known"] += "x"
			m[key] = fmt.Sprint("#", len(m["known"]))
		}
		return m[key]
	})
}

// heard listens to an answer.
func heard(t testing.TB, api API, out []byte) hearing {
	m := hearing{}
	ids := map[string]bool{}
	for _, ev := range strings.SplitAfter(string(out), "\n\n") {
		data, ok := wire.EventData([]byte(ev))
		if !ok {
			continue
		}
		if string(data) == "[DONE]" {
			m["done"] += "x"
			continue
		}
		var e map[string]any
		if err := json.Unmarshal(data, &e); err != nil {
			t.Fatalf("an event is not JSON: %q: %v", data, err)
		}
		if api > Text {
			hearNamed(m, e)
			continue
		}
		ids[fmt.Sprint(e["id"], e["created"], e["object"])] = true
		if u, ok := e["usage"].(map[string]any); ok && len(e["choices"].([]any)) == 0 {
			m["usage"] += fmt.Sprint(u["prompt_tokens"], u["completion_tokens"], u["total_tokens"])
		} else if ok {
			m["usages"] = fmt.Sprint(u["prompt_tokens"], u["completion_tokens"], u["total_tokens"])
		}
		for _, c := range e["choices"].([]any) {
			hearChoice(m, c.(map[string]any))
		}
	}
	m["ids"] = strings.Join(slices.Sorted(maps.Keys(ids)), " ")
	return m
}

func hearChoice(m hearing, c map[string]any) {
	at := fmt.Sprint(c["index"], " ")
	text := func(name string, v any) {
		if s, ok := v.(string); ok && s != "" {
			m[at+name] += s
		}
	}
	text("text", c["text"])
	text("finish", c["finish_reason"])
	if ids, ok := c["token_ids"].([]any); ok {
		m[at+"ids"] += fmt.Sprint(ids...) + " "
		m[at+"ids"] = strings.Join(strings.Fields(m[at+"ids"]), " ") + " "
	}
	if l, ok := c["logprobs"].(map[string]any); ok {
		for name, v := range l {
			for _, e := range v.([]any) {
				m[at+"logprobs "+name] += fmt.Sprint(e) + ";"
			}
		}
	}
	d, _ := c["delta"].(map[string]any)
	for _, name := range []string{"role", "content", "reasoning", "reasoning_content"} {
		text(name, d[name])
	}
	calls, _ := d["tool_calls"].([]any)
	for _, call := range calls {
		call := call.(map[string]any)
		name := fmt.Sprint("call ", call["index"], " ")
		if id, ok := call["id"].(string); ok {
			m[at+name+"id"] += m.canon(id)
		}
		if f, ok := call["function"].(map[string]any); ok {
			text(name+"name", f["name"])
			text(name+"arguments", f["arguments"])
		}
	}
}

// hearNamed is heard for an event of a messages or responses stream.
func hearNamed(m hearing, e map[string]any) {
	kind := e["type"].(string)
	if d, ok := e["delta"].(string); ok {
		m[fmt.Sprint(kind, e["output_index"], m.canon(fmt.Sprint(e["item_id"])))] += d
	} else if d, ok := e["delta"].(map[string]any); ok && kind == "content_block_delta" {
		for _, name := range []string{"text", "thinking", "partial_json"} {
			if s, ok := d[name].(string); ok {
				m[fmt.Sprint(name, e["index"])] += s
			}
		}
	} else if kind != "ping" {
		n := e["sequence_number"]
		delete(e, "sequence_number")
		m["events"] += m.canon(string(mustJSON(e))) + "\n"
		e["sequence_number"] = n
	}
	if n, ok := e["sequence_number"].(float64); ok {
		if want := fmt.Sprint(len(m["numbers"])); want != fmt.Sprint(n) {
			m["numbering"] += fmt.Sprintf("%v for %s; ", n, want)
		}
		m["numbers"] += "x"
	}
}

// same compares two answers as a client understands them.
func same(t testing.TB, api API, want, got []byte) error {
	a, b := heard(t, api, want), heard(t, api, got)
	for _, m := range []hearing{a, b} {
		delete(m, "numbers") // how many events there are is nobody's promise
		maps.DeleteFunc(m, func(name, _ string) bool { return strings.HasPrefix(name, "id ") })
	}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if a[name] != b[name] {
			return fmt.Errorf("%s is %q; uncut it is %q", name, b[name], a[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[name]; !ok {
			return fmt.Errorf("there is %s: %q", name, b[name])
		}
	}
	return nil
}

// uncut is the answer of a worker without a death, and the worker's bytes.
func uncut(t testing.TB, k kind, worker int) (out []byte, sent string) {
	r := begin(k)
	r.names = workers[worker:]
	if worker > 0 && k.second != nil {
		k.second(&r.worker)
	}
	sent = r.ask(r.names[0], true)
	whole, err := r.live(nil, nil)
	if err != nil || !whole {
		t.Fatalf("%s: uncut: whole %v, %v\n%s", k.name, whole, err, sent)
	}
	return r.out, sent
}

// offsets are the places to cut an answer at: every byte of some, and of the
// others those around the ends of events and in their middle.
func offsets(sent, name string) (at []int) {
	if name == "chat" || name == "text, stop" {
		for i := range len(sent) {
			at = append(at, i)
		}
		return at
	}
	last := 0
	for i := 2; i <= len(sent); i++ {
		if sent[i-2:i] == "\n\n" {
			at = append(at, (last+i)/2, i-1, i)
			last = i
		}
	}
	return slices.Insert(at[:len(at)-1], 0, 0)
}

// TestDeath ends the first worker after every byte or event: what the client gets is what
// it would have got without it.
func TestDeath(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			want, sent := uncut(t, k, 0)
			other, _ := uncut(t, k, 1)
			for _, at := range offsets(sent, k.name) {
				r := begin(k)
				whole, err := r.live([]int{at}, nil)
				if err == nil && whole {
					err = same(t, k.api, [][]byte{want, other}[r.from], r.out)
				}
				if err != nil || !whole {
					t.Fatalf("dead after %d bytes of %d, ways %v: whole %v, %v\n%s\n--- then, of %s\n%s", at, len(sent), r.ways, whole, err, sent[max(0, at-400):at], r.s.Next().Body, r.out[max(0, len(r.out)-1500):])
				}
			}
		})
	}
}
