package resume

import (
	"encoding/json"
	"fmt"
	"strings"
)

// fake is a worker that answers as vLLM 0.32 does, in bytes. What it says is a
// function of the request: choice c says the words c0, c1, … whose ids are
// 1000·(c+1)+i, so that a prompt of ids tells whose answer is to go on and where.
type fake struct {
	name    string // part of every id that it draws
	own     bool
	words   int
	thought int    // so many of the words are reasoning
	field   string // that the reasoning comes in
	marker  string // behind the reasoning, in the text of a completion
	calls   int    // of tools: the answer is these calls
	each    int    // tokens in one event; 0: one
	halves  bool   // every third word comes with the next token's event
	noIDs   bool
	mute    bool // says no log probabilities
	bundle  bool // two calls come in one event
	both    bool // an event carries two choices
}

// wanted is what a fake reads of a request.
type wanted struct {
	Stream  bool            `json:"stream"`
	N       int             `json:"n"`
	Max     int             `json:"max_tokens"`
	Prompt  json.RawMessage `json:"prompt"`
	IDs     bool            `json:"return_token_ids"`
	Echo    bool            `json:"echo"`
	Stop    string          `json:"stop"`
	Logprob json.RawMessage `json:"logprobs"`
	Options struct {
		Usage bool `json:"include_usage"`
		Each  bool `json:"continuous_usage_stats"`
	} `json:"stream_options"`
}

// line is one choice under way.
type line struct {
	of     int // whose words it says
	from   int
	prompt []int32
	held   string
	said   int // tokens
}

// answer is one answer of a fake.
type answer struct {
	fake
	want  wanted
	api   API
	lines []line
	out   strings.Builder
	seq   int
}

func (f fake) word(c, i int) string {
	w := fmt.Sprintf("%c%d ", 'a'+c, i)
	if i == 2 {
		return `é"` + w
	}
	return w
}

// serve answers a request.
func (f fake) serve(api API, body []byte, field *resumed) string {
	a := &answer{fake: f, api: api}
	if err := json.Unmarshal(body, &a.want); err != nil {
		panic(err)
	}
	if f.each == 0 {
		a.each = 1
	}
	switch api {
	case Messages:
		return a.messages()
	case Responses:
		return a.responses()
	}
	a.begin(field)
	return a.events(field)
}

// resumed is roundhouse_resume.
type resumed struct{ tokens []int32 }

// begin finds out which choices there are.
func (a *answer) begin(field *resumed) {
	n := max(1, a.want.N)
	prompts := [][]int32{{1, 2, 3}}
	var texts []string
	var one []int32
	var many [][]int32
	switch p := a.want.Prompt; {
	case len(p) == 0:
	case json.Unmarshal(p, &one) == nil:
		prompts = [][]int32{one}
	case json.Unmarshal(p, &many) == nil:
		prompts = many
	case json.Unmarshal(p, &texts) == nil:
		prompts = nil
		for i := range texts {
			prompts = append(prompts, []int32{1, 2, int32(3 + i)})
		}
	}
	for i, p := range prompts {
		for j := range n {
			l := line{of: i*n + j, prompt: p}
			for _, id := range p {
				if id >= 1000 {
					l.of, l.from = int(id/1000)-1, int(id%1000)+1
				}
			}
			if field != nil {
				l.from = len(field.tokens)
			}
			a.lines = append(a.lines, l)
		}
	}
}

// size is how many words a choice has: later choices have more.
func (a *answer) size(l *line) int {
	n := a.words + l.of
	if m := a.want.Max; m > 0 {
		n = min(n, l.from+m)
	}
	return n
}

func (a *answer) event(choices, extra string) {
	object, id := "chat.completion.chunk", "chatcmpl-"
	if a.api == Text {
		object, id = "text_completion", "cmpl-"
	}
	fmt.Fprintf(&a.out, "data: {\"id\":\"%s%s\",\"object\":\"%s\",\"created\":%d,\"model\":\"m\",\"choices\":[%s]%s}\n\n", id, a.name, object, 17+len(a.name), choices, extra)
}

func (a *answer) usage() string {
	prompt, said := 0, 0
	for i := range a.lines {
		if i%max(1, a.want.N) == 0 {
			prompt += len(a.lines[i].prompt)
		}
		said += a.lines[i].said
	}
	return fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d}`, prompt, prompt+said, said)
}

func (a *answer) each0() string {
	if a.want.Options.Each {
		return a.usage()
	}
	return ""
}

func (a *answer) events(field *resumed) string {
	ids := a.want.IDs && !a.noIDs
	for i := range a.lines {
		if field != nil {
			a.lines[i].said = len(field.tokens)
		} else if a.api == Chat {
			prompt := "null"
			if ids {
				prompt = string(mustJSON(a.lines[i].prompt))
			}
			a.event(fmt.Sprintf(`{"index":%d,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`, i), `,"prompt_token_ids":`+prompt+`,"prompt_text":null`+a.each0())
		}
	}
	for step := 0; ; step++ {
		more := false
		for i := range a.lines {
			l := &a.lines[i]
			from := l.from + step*a.each
			if to := min(from+a.each, a.size(l)); from < to {
				more = true
				a.token(i, l, from, to, ids)
			}
		}
		if !more {
			break
		}
	}
	if a.want.Options.Usage {
		a.event("", a.usage()+`,"system_fingerprint":"x"`)
	}
	return a.out.String() + "data: [DONE]\n\n"
}

// token sends the event of the words from up to to.
func (a *answer) token(i int, l *line, from, to int, asked bool) {
	text, probs := "", []string{}
	var ids []int32
	for w := from; w < to; w++ {
		text += a.text(l, w)
		ids = append(ids, int32(1000*(l.of+1)+w))
		probs = append(probs, fmt.Sprintf(`{"token":"t%d","logprob":-0.5,"bytes":[53],"top_logprobs":[]}`, w))
	}
	l.said += to - from
	finish := "null"
	if to == a.size(l) {
		finish = `"stop"`
		if a.want.Max > 0 && to == l.from+a.want.Max {
			finish = `"length"`
		}
	}
	if stop := a.want.Stop; stop != "" {
		l.held += text
		n := max(0, len([]rune(l.held))-len([]rune(stop))+1)
		if finish != "null" {
			n = len([]rune(l.held))
		}
		r := []rune(l.held)
		text, l.held = string(r[:n]), string(r[n:])
	}
	told := "null"
	if asked {
		told = string(mustJSON(ids))
	}
	logprobs := "null"
	if a.mute {
		a.want.Logprob = nil
	}
	if string(a.want.Logprob) == "true" {
		logprobs = `{"content":[` + strings.Join(probs, ",") + `]}`
	} else if len(a.want.Logprob) > 0 {
		logprobs = fmt.Sprintf(`{"text_offset":%s,"token_logprobs":%s,"tokens":%s,"top_logprobs":%s}`, mustJSON(ids), mustJSON(ids), mustJSON(ids), mustJSON(ids))
	}
	if a.api == Text {
		prompt := "null"
		if asked && from == l.from {
			prompt = string(mustJSON(l.prompt))
		}
		if a.want.Echo && from == l.from {
			text = "the prompt: " + text
		}
		a.event(fmt.Sprintf(`{"index":%d,"text":%s,"logprobs":%s,"finish_reason":%s,"stop_reason":null,"prompt_token_ids":%s,"token_ids":%s}`,
			i, quote(text), logprobs, finish, prompt, told), a.each0())
		return
	}
	one := fmt.Sprintf(`{"index":%d,"delta":%s,"logprobs":%s,"finish_reason":%s,"token_ids":%s}`, i, a.delta(l, from, to, text), logprobs, finish, told)
	if a.both {
		one += "," + one
	}
	a.event(one, a.each0())
}

// text is the text of a word, or of none and the one before.
func (a *answer) text(l *line, w int) string {
	text := a.word(l.of, w)
	if a.halves && w%3 == 1 && w < a.size(l)-1 {
		return ""
	}
	if a.halves && w%3 == 2 && w > l.from {
		text = a.word(l.of, w-1) + text
	}
	if a.api == Text && a.thought > 0 && w == a.thought {
		text = a.marker + text // as a completion of ids says it
	}
	return text
}

// delta is a chat's delta: reasoning first, or calls of tools.
func (a *answer) delta(l *line, from, to int, text string) string {
	if a.calls > 0 {
		if a.bundle {
			var all []string
			for c := range a.calls {
				all = append(all, fmt.Sprintf(`{"id":"call_%s%d","type":"function","index":%d,"function":{"name":"f%d","arguments":"a"}}`, a.name, c, c, c))
			}
			return `{"tool_calls":[` + strings.Join(all, ",") + `]}`
		}
		call := from * a.calls / a.size(l)
		if from == 0 || call != (from-1)*a.calls/a.size(l) {
			return fmt.Sprintf(`{"tool_calls":[{"id":"call_%s%d","type":"function","index":%d,"function":{"name":"f%d","arguments":%s}}]}`, a.name, call, call, call, quote(text))
		}
		return fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, call, quote(text))
	}
	if to <= a.thought {
		return fmt.Sprintf(`{"%s":%s}`, a.field, quote(text))
	}
	if from < a.thought {
		cut := 0
		for w := from; w < a.thought; w++ {
			cut += len(a.word(l.of, w))
		}
		return fmt.Sprintf(`{"%s":%s,"content":%s}`, a.field, quote(text[:cut]), quote(text[cut:]))
	}
	return fmt.Sprintf(`{"content":%s}`, quote(text))
}

// messages is an answer of /v1/messages: reasoning, text and a call.
func (a *answer) messages() string {
	put := func(name, data string) {
		fmt.Fprintf(&a.out, "event: %s\ndata: {\"type\":\"%s\"%s}\n\n", name, name, data)
	}
	put("message_start", fmt.Sprintf(`,"message":{"id":"chatcmpl-%s","type":"message","role":"assistant","content":[],"model":"m","usage":{"input_tokens":3,"output_tokens":0}}`, a.name))
	fmt.Fprint(&a.out, "event: ping\ndata: {\"type\":\"ping\"}\n\n")
	for b, kind := range []string{"thinking", "text", "tool_use"} {
		start := fmt.Sprintf(`{"type":"%s","text":""}`, kind)
		if kind == "tool_use" {
			start = fmt.Sprintf(`{"type":"tool_use","id":"toolu_%s","name":"f","input":{}}`, a.name)
		}
		put("content_block_start", fmt.Sprintf(`,"content_block":%s,"index":%d`, start, b))
		field := [...][2]string{{"thinking_delta", "thinking"}, {"text_delta", "text"}, {"input_json_delta", "partial_json"}}[b]
		for w := 0; w < a.words; w += a.each {
			text := ""
			for v := w; v < min(w+a.each, a.words); v++ {
				text += a.word(b, v)
			}
			put("content_block_delta", fmt.Sprintf(`,"delta":{"type":"%s","%s":%s},"index":%d`, field[0], field[1], quote(text), b))
		}
		put("content_block_stop", fmt.Sprintf(`,"index":%d`, b))
	}
	put("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":3,"output_tokens":%d}`, 3*a.words))
	put("message_stop", "")
	return a.out.String()
}

// responses is an answer of /v1/responses: a message and a call.
func (a *answer) responses() string {
	put := func(name, data string) {
		fmt.Fprintf(&a.out, "event: %s\ndata: {%s,\"sequence_number\":%d,\"type\":\"%s\"}\n\n", name, data, a.seq, name)
		a.seq++
	}
	response := func(status, output, usage string) string {
		return fmt.Sprintf(`"response":{"id":"resp_%s","created_at":%d,"model":"m","output":[%s],"status":"%s","usage":%s}`, a.name, 17+len(a.name), output, status, usage)
	}
	put("response.created", response("in_progress", "", "null"))
	put("response.in_progress", response("in_progress", "", "null"))
	output := ""
	for i, kind := range []string{"message", "function_call"} {
		item := fmt.Sprintf(`{"id":"item_%s%d","type":"%s","call_id":"call_%s","name":"f"}`, a.name, i, kind, a.name)
		put("response.output_item.added", fmt.Sprintf(`"item":%s,"output_index":%d`, item, i))
		delta := [...]string{"response.output_text.delta", "response.function_call_arguments.delta"}[i]
		whole := ""
		for w := 0; w < a.words; w += a.each {
			text := ""
			for v := w; v < min(w+a.each, a.words); v++ {
				text += a.word(i, v)
			}
			whole += text
			put(delta, fmt.Sprintf(`"content_index":0,"delta":%s,"item_id":"item_%s%d","output_index":%d`, quote(text), a.name, i, i))
		}
		put(strings.Replace(delta, "delta", "done", 1), fmt.Sprintf(`"content_index":0,"text":%s,"item_id":"item_%s%d","output_index":%d`, quote(whole), a.name, i, i))
		put("response.output_item.done", fmt.Sprintf(`"item":%s,"output_index":%d`, item, i))
		output += strings.Repeat(",", min(i, 1)) + item
	}
	put("response.completed", response("completed", output, `{"input_tokens":3,"output_tokens":20}`))
	return a.out.String()
}
