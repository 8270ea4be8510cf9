package differential

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Answer is what is compared of an answer, and what is recorded of vLLM's.
type Answer struct {
	Name       string    `json:"name"`
	Status     int       `json:"status"`
	Error      *Error    `json:"error,omitempty"`
	Keys       []string  `json:"keys,omitempty"`
	Text       []string  `json:"text,omitempty"` // of each choice, item or block
	Finish     []string  `json:"finish,omitempty"`
	Prompt     int       `json:"prompt,omitempty"` // tokens
	Completion int       `json:"completion,omitempty"`
	Logprobs   []float64 `json:"logprobs,omitempty"` // of the tokens that were sampled
	Events     []string  `json:"events,omitempty"`   // in order; one kind several times over is one
	Count      int       `json:"count,omitempty"`    // of events

	keys  map[string]bool
	said  map[string]string
	order []string
}

// Error is how a refusal is told, but for its words.
type Error struct {
	Type  string `json:"type"`
	Param any    `json:"param"`
	Code  any    `json:"code"`
}

type object = map[string]any

func (a *Answer) readWhole(data []byte) {
	a.keys, a.said = map[string]bool{}, map[string]string{}
	var v any
	if json.Unmarshal(data, &v) != nil {
		return
	}
	a.walk("", v)
	if top, ok := v.(object); ok {
		a.readError(top)
		a.read(top)
	}
}

func (a *Answer) readError(top object) {
	e, ok := top["error"].(object)
	if !ok {
		return
	}
	a.Error = &Error{Type: text(e["type"]), Param: e["param"], Code: e["code"]}
	a.keys = map[string]bool{}
}

// settle puts what was gathered into its final form.
func (a *Answer) settle() {
	for k := range a.keys {
		a.Keys = append(a.Keys, k)
	}
	slices.Sort(a.Keys)
	slices.Sort(a.order)
	for _, k := range a.order {
		a.Text = append(a.Text, k+"="+a.said[k])
	}
}

// free are maps whose keys are no names.
func free(path string) bool {
	return strings.HasSuffix(path, "top_logprobs[]") || strings.HasSuffix(path, "prompt_logprobs[]") || strings.HasSuffix(path, "metadata") ||
		strings.HasSuffix(path, "parameters") || strings.HasSuffix(path, "schema") || strings.HasSuffix(path, "input") && path != "input"
}

// walk gathers the names of what an answer has.
func (a *Answer) walk(path string, v any) {
	switch v := v.(type) {
	case object:
		for k, inner := range v {
			at := strings.TrimPrefix(path+"."+k, ".")
			if free(path) && len(path) > 0 {
				at = path + ".*"
			}
			a.keys[at] = true
			a.walk(at, inner)
		}
	case []any:
		for _, inner := range v {
			a.walk(path+"[]", inner)
		}
	}
}

// say adds to what was said under a name.
func (a *Answer) say(name, more string) {
	if _, ok := a.said[name]; !ok {
		a.order = append(a.order, name)
	}
	a.said[name] += more
}

// read takes what was said and counted out of an answer of any API.
func (a *Answer) read(top object) {
	for i, c := range list(top["choices"]) {
		a.readChoice(i, c)
	}
	a.readItems(list(top["output"]))
	a.readBlocks(list(top["content"]))
	a.readUsage(top)
	for _, k := range []string{"stop_reason", "status"} {
		if s, ok := top[k].(string); ok && (top["type"] == "message" || top["object"] == "response") {
			a.Finish = append(a.Finish, s)
		}
	}
	for _, k := range []string{"count", "tokens", "input_tokens", "token_strs", "server_load"} {
		if v, ok := top[k]; ok && top["usage"] == nil {
			a.say(k, text(v))
		}
	}
	if s, ok := top["prompt"].(string); ok {
		a.say("prompt", s)
	}
}

func (a *Answer) readChoice(i int, c any) {
	choice, _ := c.(object)
	said := choice
	if m, ok := choice["message"].(object); ok {
		said = m
	}
	for _, k := range []string{"role", "text", "reasoning", "content"} {
		if s, ok := said[k].(string); ok && s != "" {
			a.say(fmt.Sprintf("%d.%s", i, k), s)
		}
	}
	for k, call := range list(said["tool_calls"]) {
		fn, _ := call.(object)["function"].(object)
		a.say(fmt.Sprintf("%d.call%d", i, k), text(fn["name"])+canonical(text(fn["arguments"])))
	}
	if f, ok := choice["finish_reason"].(string); ok {
		a.Finish = append(a.Finish, f)
	}
	if l, ok := choice["logprobs"].(object); ok {
		a.readLogprobs(l)
	}
}

func (a *Answer) readLogprobs(l object) {
	for _, v := range list(l["token_logprobs"]) {
		if x, ok := v.(float64); ok {
			a.Logprobs = append(a.Logprobs, x)
		}
	}
	for _, v := range list(l["content"]) {
		if x, ok := v.(object)["logprob"].(float64); ok {
			a.Logprobs = append(a.Logprobs, x)
		}
	}
}

// readItems reads the items of the Responses API.
func (a *Answer) readItems(items []any) {
	for i, item := range items {
		it, _ := item.(object)
		name := fmt.Sprintf("%d.%s", i, text(it["type"]))
		for _, part := range list(it["content"]) {
			p, _ := part.(object)
			a.say(name, text(p["text"]))
			for _, l := range list(p["logprobs"]) {
				if x, ok := l.(object)["logprob"].(float64); ok {
					a.Logprobs = append(a.Logprobs, x)
				}
			}
		}
		if it["name"] != nil {
			a.say(name, text(it["name"])+canonical(text(it["arguments"])))
		}
	}
}

// readBlocks reads the blocks of the Messages API.
func (a *Answer) readBlocks(blocks []any) {
	for i, block := range blocks {
		b, _ := block.(object)
		name := fmt.Sprintf("%d.%s", i, text(b["type"]))
		a.say(name, text(b["text"])+text(b["thinking"])+text(b["name"]))
		if b["input"] != nil {
			a.say(name, text(b["input"]))
		}
	}
}

func (a *Answer) readUsage(top object) {
	u, ok := top["usage"].(object)
	if !ok {
		return
	}
	for _, k := range []string{"prompt_tokens", "input_tokens"} {
		if n, ok := u[k].(float64); ok {
			a.Prompt = int(n)
		}
	}
	for _, k := range []string{"completion_tokens", "output_tokens"} {
		if n, ok := u[k].(float64); ok {
			a.Completion = int(n)
		}
	}
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// text is a value as a text; of what is no text, its JSON.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	data, err := json.Marshal(v)
	if err != nil {
		panic("BUG: JSON that was read cannot be written")
	}
	return string(data)
}

// canonical is JSON without its white space, and in the order of its keys.
func canonical(s string) string {
	var v any
	if json.Unmarshal([]byte(s), &v) != nil {
		return s
	}
	return text(v)
}
