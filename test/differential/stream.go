package differential

import (
	"encoding/json"
	"fmt"
	"strings"
)

// readStream reads an answer in events.
func (a *Answer) readStream(data []byte) {
	a.keys, a.said = map[string]bool{}, map[string]string{}
	for block := range strings.SplitSeq(string(data), "\n\n") {
		kind, body := "", ""
		for line := range strings.SplitSeq(block, "\n") {
			if v, ok := strings.CutPrefix(line, "event: "); ok {
				kind = v
			}
			if v, ok := strings.CutPrefix(line, "data: "); ok {
				body += v
			}
		}
		if body == "" {
			continue
		}
		if body == "[DONE]" {
			a.event("[DONE]")
			continue
		}
		var e object
		if json.Unmarshal([]byte(body), &e) != nil {
			a.event("unreadable")
			continue
		}
		if kind != "" {
			a.namedEvent(kind, e)
			continue
		}
		a.chunk(e)
	}
}

// event counts an event of a kind.
func (a *Answer) event(kind string) {
	a.Count++
	if n := len(a.Events); n == 0 || a.Events[n-1] != kind {
		a.Events = append(a.Events, kind)
	}
}

// chunk reads an event of a chat or a completion.
func (a *Answer) chunk(e object) {
	if err, ok := e["error"].(object); ok {
		a.Error = &Error{Type: text(err["type"]), Param: err["param"], Code: err["code"]}
		a.event("error")
		return
	}
	a.walk("", e)
	a.readUsage(e)
	choices := list(e["choices"])
	if len(choices) == 0 {
		a.event("usage")
		return
	}
	kind := ""
	for _, c := range choices {
		choice, _ := c.(object)
		i := int(choice["index"].(float64))
		d, ok := choice["delta"].(object)
		if !ok {
			d = object{"text": choice["text"]}
		}
		for _, k := range []string{"role", "reasoning", "content", "text", "tool_calls"} {
			v, there := d[k]
			if !there {
				continue
			}
			kind += k + " "
			a.delta(i, k, v)
		}
		if f, ok := choice["finish_reason"].(string); ok {
			a.Finish = append(a.Finish, f)
			kind += "finish "
		}
		if l, ok := choice["logprobs"].(object); ok {
			a.readLogprobs(l)
		}
	}
	a.event(strings.TrimSpace(kind))
}

func (a *Answer) delta(i int, k string, v any) {
	if k != "tool_calls" {
		if s := text(v); s != "" {
			a.say(fmt.Sprintf("%d.%s", i, k), s)
		}
		return
	}
	for _, c := range list(v) {
		call, _ := c.(object)
		fn, _ := call["function"].(object)
		a.say(fmt.Sprintf("%d.call%v", i, call["index"]), text(fn["name"])+text(fn["arguments"]))
	}
}

// namedEvent reads an event of the Responses or the Messages API.
func (a *Answer) namedEvent(kind string, e object) {
	a.event(kind)
	a.walk(kind, e)
	if d, ok := e["delta"].(object); ok && d["stop_reason"] != nil {
		a.Finish = append(a.Finish, text(d["stop_reason"]))
		a.readUsage(e)
	} else if ok {
		a.say(fmt.Sprint("block", e["index"]), text(d["text"])+text(d["thinking"])+text(d["partial_json"]))
	}
	if err, ok := e["error"].(object); ok {
		a.Error = &Error{Type: text(err["type"])}
	}
	if r, ok := e["response"].(object); ok && r["usage"] != nil {
		a.read(r)
	}
}
