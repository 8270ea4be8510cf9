package kinds

import (
	"encoding/json"
	"fmt"
	"maps"
)

// Model is the name under which the demonstration model is served.
const Model = "roundhouse-demo"

// Kind is one kind of request.
type Kind struct {
	Name string
	Path string
	Free bool // sampled without a seed: two runs may differ
	body object
}

type object = map[string]any

// Body is the request as JSON, streamed or whole.
func (k Kind) Body(stream bool) []byte {
	b := maps.Clone(k.body)
	b["model"] = Model
	if stream {
		b["stream"] = true
	} else {
		delete(b, "stream_options")
	}
	text, err := json.Marshal(b)
	if err != nil {
		panic("BUG: a request cannot be encoded: " + err.Error())
	}
	return text
}

const (
	chatPath = "/v1/chat/completions"
	textPath = "/v1/completions"
)

// Streams are kinds of answers of about so many tokens; counts from first on, so
// that answers to different numbers differ.
func Streams(first, tokens int) []Kind {
	all := chats(first, tokens)
	all = append(all, forms(first, tokens)...)
	all = append(all, texts(first, tokens)...)
	return append(all, others(first, tokens)...)
}

func question(first, tokens int) string {
	return fmt.Sprintf("Count from %d to %d by 1.", first, first+tokens)
}

func user(text string) []object { return []object{{"role": "user", "content": text}} }

// asked is the question as the model's chat template writes it.
func asked(first, tokens int) string {
	return "<|im_start|>user\n" + question(first, tokens) + "<|im_end|>\n<|im_start|>assistant\n"
}

// with is an object with further fields.
func with(o object, more ...object) object {
	o = maps.Clone(o)
	for _, m := range more {
		maps.Copy(o, m)
	}
	return o
}

func chats(first, tokens int) []Kind {
	ask := object{"messages": user(question(first, tokens)), "max_tokens": tokens, "temperature": 0}
	chat := func(name string, more object) Kind { return Kind{Name: name, Path: chatPath, body: with(ask, more)} }
	free := chat("chat-sampled", object{"temperature": 0.7, "top_p": 0.9})
	free.Free = true
	return []Kind{
		chat("chat", nil),
		chat("chat-usage", object{"stream_options": object{"include_usage": true}}),
		chat("chat-usage-continuous", object{"stream_options": object{"include_usage": true, "continuous_usage_stats": true}}),
		chat("chat-ids", object{"return_token_ids": true}),
		chat("chat-n2", object{"n": 2, "temperature": 1, "seed": 7}),
		chat("chat-n2-usage", object{"n": 2, "temperature": 1, "seed": 7, "stream_options": object{"include_usage": true}}),
		chat("chat-logprobs", object{"logprobs": true, "top_logprobs": 2}),
		chat("chat-stop", object{"stop": []string{fmt.Sprintf(" %d", first+tokens/3), "never said"}}),
		chat("chat-stop-unmet", object{"stop": []string{"never said", ", x"}}),
		chat("chat-seed", object{"seed": 7, "temperature": 1}),
		free,
		chat("chat-penalties", object{"presence_penalty": 0.1, "frequency_penalty": 0.05, "repetition_penalty": 1.01}),
		chat("chat-penalties-zero", object{"presence_penalty": 0, "frequency_penalty": 0}),
		chat("chat-min-tokens", object{"min_tokens": tokens}),
		chat("chat-continued", object{
			"messages":               append(user(question(first, tokens)), object{"role": "assistant", "content": fmt.Sprintf("%d", first)}),
			"continue_final_message": true, "add_generation_prompt": false,
		}),
		chat("chat-echo", object{
			"messages": append(user(question(first, tokens)), object{"role": "assistant", "content": fmt.Sprintf("%d", first)}),
			"echo":     true, "continue_final_message": true, "add_generation_prompt": false,
		}),
		chat("chat-long", object{"messages": append(user(Long(2400)), object{"role": "assistant", "content": "ok"}, user(question(first, tokens))[0])}),
	}
}

var weather = []object{{"type": "function", "function": object{
	"name": "get_weather", "description": "The weather in a city.",
	"parameters": object{"type": "object", "properties": object{
		"city": object{"type": "string", "enum": []string{"Oslo", "Rome"}}, "days": object{"type": "integer"},
	}, "required": []string{"city", "days"}, "additionalProperties": false},
}}}

func forms(first, tokens int) []Kind {
	ask := object{"messages": user("Give the weather in Oslo as JSON."), "max_tokens": max(tokens, 96), "temperature": 0}
	chat := func(name string, more object) Kind { return Kind{Name: name, Path: chatPath, body: with(ask, more)} }
	schema := object{"type": "object", "properties": object{
		"name":    object{"type": "string", "maxLength": 20},
		"text":    object{"type": "string", "minLength": 10, "maxLength": 60},
		"numbers": object{"type": "array", "items": object{"type": "integer", "maximum": 99}, "minItems": 10, "maxItems": 20},
	}, "required": []string{"name", "text", "numbers"}, "additionalProperties": false}
	named := object{"type": "function", "function": object{"name": "get_weather"}}
	return []Kind{
		chat("chat-schema", object{"response_format": object{"type": "json_schema", "json_schema": object{"name": "weather", "schema": schema}}}),
		chat("chat-regex", object{"structured_outputs": object{"regex": "[0-9]{2}(, [0-9]{2}){18,24}"}}),
		chat("chat-tools-auto", object{"messages": user(question(first, tokens)), "tools": weather, "tool_choice": "auto"}),
		chat("chat-tools-required", object{"tools": weather, "tool_choice": "required"}),
		chat("chat-tools-named", object{"tools": weather, "tool_choice": named}),
		chat("chat-tools-none", object{"messages": user(question(first, tokens)), "tools": weather, "tool_choice": "none"}),
	}
}

func texts(first, tokens int) []Kind {
	ask := object{"prompt": asked(first, tokens), "max_tokens": tokens, "temperature": 0}
	text := func(name string, more object) Kind { return Kind{Name: name, Path: textPath, body: with(ask, more)} }
	free := text("text-sampled", object{"temperature": 0.7})
	free.Free = true
	two := []string{asked(first, tokens), asked(first+3, tokens)}
	return []Kind{
		text("text", nil),
		text("text-by-ids", object{"prompt": ids}),
		text("text-usage", object{"stream_options": object{"include_usage": true}}),
		text("text-ids", object{"return_token_ids": true}),
		text("text-n2", object{"n": 2, "temperature": 1, "seed": 7}),
		text("text-prompts", object{"prompt": two}),
		text("text-prompts-by-ids", object{"prompt": [][]int{ids, ids[:len(ids)-1]}}),
		text("text-prompts-n2-usage", object{"prompt": two, "n": 2, "temperature": 1, "seed": 7, "stream_options": object{"include_usage": true}}),
		text("text-logprobs", object{"logprobs": 2}),
		text("text-stop", object{"stop": []string{fmt.Sprintf(" %d", first+tokens/3)}}),
		text("text-stop-unmet", object{"stop": []string{"never said"}}),
		text("text-seed", object{"seed": 7, "temperature": 1}),
		free,
		text("text-echo", object{"echo": true}),
		text("text-echo-logprobs", object{"echo": true, "logprobs": 1}),
		text("text-penalties", object{"presence_penalty": 0.1, "frequency_penalty": 0.05}),
		text("text-long", object{"prompt": Long(2400) + asked(first, tokens)}),
	}
}

func others(first, tokens int) []Kind {
	tool := []object{{"name": "get_weather", "description": "The weather in a city.", "input_schema": weather[0]["function"].(object)["parameters"]}}
	flat := []object{with(object{"type": "function"}, weather[0]["function"].(object))}
	messages := object{"messages": user(question(first, tokens)), "max_tokens": tokens, "temperature": 0}
	responses := object{"input": question(first, tokens), "max_output_tokens": tokens, "temperature": 0}
	return []Kind{
		{Name: "messages", Path: "/v1/messages", body: messages},
		{Name: "messages-tools", Path: "/v1/messages", body: with(messages, object{"max_tokens": max(tokens, 96), "tools": tool, "tool_choice": object{"type": "any"}})},
		{Name: "responses", Path: "/v1/responses", body: responses},
		{Name: "responses-tools", Path: "/v1/responses", body: with(responses, object{"max_output_tokens": max(tokens, 96), "tools": flat, "tool_choice": "required"})},
	}
}

// Reasoning are kinds of answers that begin with a thought, of a server of
// [Thinker]'s model that parts it from the answer.
func Reasoning(tokens int) []Kind {
	messages := user("Count from 10 to 180 by 10.")
	ask := object{"messages": messages, "max_tokens": tokens, "temperature": 0}
	chat := func(name string, more object) Kind { return Kind{Name: name, Path: chatPath, body: with(ask, more)} }
	return []Kind{
		chat("reasoning", nil),
		chat("reasoning-ids", object{"return_token_ids": true}),
		chat("reasoning-usage", object{"stream_options": object{"include_usage": true}}),
		chat("reasoning-stop", object{"stop": []string{"never said"}}),
		chat("reasoning-logprobs", object{"logprobs": true}),
		chat("reasoning-only", object{"messages": user("Count from 10 to 80 by 2.")}),
		chat("reasoning-hidden", object{"include_reasoning": false}),
		{Name: "reasoning-messages", Path: "/v1/messages", body: ask},
		{Name: "reasoning-responses", Path: "/v1/responses", body: object{"input": "Count from 10 to 180 by 10.", "max_output_tokens": tokens, "temperature": 0}},
	}
}

// Long is a text of about so many tokens.
func Long(tokens int) string {
	b := make([]byte, 0, 8*tokens)
	for i := range tokens / 3 {
		b = fmt.Appendf(b, "river %d ", i*7%1000)
	}
	return string(b)
}

// ids are the tokens of "Count from 5 to 60 by 1." as the chat template writes it.
var ids = []int{1534, 290, 198, 534, 456, 220, 20, 354, 220, 21, 15, 809, 220, 16, 13, 1535, 198, 1534, 288, 198}
