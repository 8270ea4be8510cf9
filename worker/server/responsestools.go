package server

import (
	"encoding/json"
	"strings"
)

// customInput is the argument that holds the text of a call of a custom tool:
// for the model it is a function of one string.
const customInput = "input"

// responseTool is a tool as the client named it.
type responseTool struct {
	namespace, name string
	custom          bool // its calls carry a text in place of arguments
}

// flatName is the name of a function of a namespace, as the model knows it.
func flatName(namespace, name string) string { return namespace + "__" + name }

// toolSet gathers the tools that the model can call.
type toolSet struct {
	list  []map[string]any
	names map[string]responseTool
}

func (t *toolSet) add(tool map[string]json.RawMessage, namespace string) {
	name, _ := decoded[string](tool["name"])
	known := responseTool{namespace: namespace, name: name}
	if namespace != "" {
		name = flatName(namespace, name)
	}
	fn := map[string]any{}
	for k, v := range tool {
		if k != "type" && k != "format" && k != "defer_loading" {
			fn[k] = v
		}
	}
	fn["name"] = name
	if kind, _ := decoded[string](tool["type"]); kind == "custom" {
		known.custom = true
		fn["parameters"] = map[string]any{
			"type": "object", "properties": map[string]any{customInput: map[string]string{"type": "string"}},
			"required": []string{customInput}, "additionalProperties": false,
		}
	}
	t.names[name] = known
	t.list = append(t.list, map[string]any{"type": "function", "function": fn})
}

// chatTools sets a chat's tools. Those that only OpenAI's own servers have
// (search, interpreters, remote servers) are left out: the model never calls
// them.
func (f *responsesRequest) chatTools(cr *chatRequest) (map[string]responseTool, *apiError) {
	list, ok := decoded[[]map[string]json.RawMessage](f.Tools)
	if f.Tools != nil && !ok {
		return nil, badShape("list_type", "body.tools", "Input should be a valid list")
	}
	set := &toolSet{names: map[string]responseTool{}}
	for i, t := range list {
		switch kind, _ := decoded[string](t["type"]); kind {
		case "":
			return nil, badShape("union_tag_not_found", at("body.tools", i), "Unable to extract tag using discriminator 'type'")
		case "function", "custom":
			set.add(t, "")
		case "namespace":
			namespace, _ := decoded[string](t["name"])
			inner, _ := decoded[[]map[string]json.RawMessage](t["tools"])
			for _, tool := range inner {
				set.add(tool, namespace)
			}
		}
	}
	if set.list != nil {
		cr.Tools = marshalled(set.list)
	}
	return set.names, f.chooseTool(cr, set)
}

// chooseTool turns tool_choice into that of a chat.
func (f *responsesRequest) chooseTool(cr *chatRequest, set *toolSet) *apiError {
	word, isWord := decoded[string](f.ToolChoice)
	switch {
	case f.ToolChoice == nil:
		return nil
	case isWord && word != "auto" && word != "none" && word != "required":
		return badShape("literal_error", "body.tool_choice", "Input should be 'none', 'auto' or 'required'")
	case isWord && set.list == nil && word == "required" && !f.hasTools():
		return badValue("tool_choice", "Tool choice 'required' must be specified with 'tools' parameter.")
	case isWord && set.list == nil:
		return nil
	case isWord:
		cr.ToolChoice = f.ToolChoice
		return nil
	}
	choice, ok := decoded[struct{ Type, Name, Mode string }](f.ToolChoice)
	if !ok {
		return badShape("dict_type", "body.tool_choice", "Input should be a valid dictionary")
	}
	switch choice.Type {
	case "function", "custom":
		name := choice.Name
		for flat, t := range set.names {
			if t.name == name {
				name = flat
			}
		}
		if _, ok := set.names[name]; !ok {
			return badValue("tool_choice", "Tool choice 'function' not found in 'tools' parameter.")
		}
		cr.ToolChoice = marshalled(map[string]any{"type": "function", "function": map[string]string{"name": name}})
	case "allowed_tools":
		return f.allowTools(cr, set, choice.Mode)
	}
	return nil // a tool of another kind is not there to be called
}

func (f *responsesRequest) hasTools() bool {
	list, _ := decoded[[]json.RawMessage](f.Tools)
	return len(list) > 0
}

// allowTools leaves the model those tools that the request allows.
func (f *responsesRequest) allowTools(cr *chatRequest, set *toolSet, mode string) *apiError {
	allowed, _ := decoded[struct {
		Tools []struct{ Name string } `json:"tools"`
	}](f.ToolChoice)
	may := map[string]bool{}
	for _, t := range allowed.Tools {
		may[t.Name] = true
	}
	var left []map[string]any
	for _, tool := range set.list {
		fn := tool["function"].(map[string]any)
		name := fn["name"].(string)
		if may[name] || may[set.names[name].name] {
			left = append(left, tool)
		}
	}
	cr.Tools = nil
	if left == nil {
		return nil
	}
	cr.Tools = marshalled(left)
	if mode == "required" || mode == "auto" {
		cr.ToolChoice = marshalled(mode)
	}
	return nil
}

// responseFormat turns the flat form of this API into that of chats.
func responseFormat(format json.RawMessage) json.RawMessage {
	f, ok := decoded[map[string]json.RawMessage](format)
	if !ok || string(f["type"]) != `"json_schema"` {
		return format
	}
	kind := f["type"]
	delete(f, "type")
	return marshalled(map[string]any{"type": kind, "json_schema": f})
}

// customText takes the text out of the arguments of a call of a custom tool,
// {"input":"…"}, as they come.
type customText struct {
	marks int    // quotation marks before the text: the third one begins it
	over  bool   // behind the one that ends it
	held  string // an escape that is not complete
}

// add returns the text that more of the arguments bring.
func (c *customText) add(more string) string {
	if c.over {
		return ""
	}
	for ; c.marks < 3; c.marks++ {
		at := strings.IndexByte(more, '"')
		if at < 0 {
			return ""
		}
		more = more[at+1:]
	}
	c.held += more
	n := 0
	for n < len(c.held) && c.held[n] != '"' {
		step := 1
		if c.held[n] == '\\' {
			step = escapeLength(c.held[n:])
		}
		if step == 0 || n+step > len(c.held) {
			break
		}
		n += step
	}
	c.over = n < len(c.held) && c.held[n] == '"'
	text, ok := decoded[string](json.RawMessage(`"` + c.held[:n] + `"`))
	if !ok {
		return ""
	}
	c.held = c.held[n:]
	return text
}

// escapeLength is the length of the escape that s begins with; 0: it is not
// complete.
func escapeLength(s string) int {
	switch {
	case len(s) < 2:
		return 0
	case s[1] != 'u':
		return 2
	case len(s) < 6:
		return 0
	}
	if u, ok := escape([]byte(s)); ok && u >= 0xD800 && u < 0xDC00 {
		return 12 // with its other half
	}
	return 6
}
