package server

import "encoding/json"

// message is an answer's.
type message struct {
	Role        string     `json:"role"`
	Content     *string    `json:"content"`
	Refusal     *string    `json:"refusal"`
	Annotations any        `json:"annotations"`
	Audio       any        `json:"audio"`
	Function    any        `json:"function_call"`
	ToolCalls   []toolCall `json:"tool_calls,omitempty"`
	Reasoning   *string    `json:"reasoning"`
}

type toolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function functionCall `json:"function"`
}

type functionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatChoice struct {
	Index    int           `json:"index"`
	Message  message       `json:"message"`
	Logprobs *chatLogprobs `json:"logprobs"`
	Finish   *string       `json:"finish_reason"`
	Stop     any           `json:"stop_reason"`
	TokenIDs []int32       `json:"token_ids"`
	Experts  any           `json:"routed_experts"`
}

type chatAnswer struct {
	ID             string                     `json:"id"`
	Object         string                     `json:"object"`
	Created        int64                      `json:"created"`
	Model          string                     `json:"model"`
	Choices        []chatChoice               `json:"choices"`
	ServiceTier    *string                    `json:"service_tier"`
	Fingerprint    *string                    `json:"system_fingerprint"`
	Usage          *usage                     `json:"usage"`
	PromptLogprobs []map[string]promptLogprob `json:"prompt_logprobs"`
	PromptTokenIDs []int32                    `json:"prompt_token_ids"`
	PromptText     *string                    `json:"prompt_text"`
	KVTransfer     any                        `json:"kv_transfer_params"`
	ECTransfer     any                        `json:"ec_transfer_params"`
	Metrics        any                        `json:"metrics"`
}

// chatChunk is one event of a stream; it has only what was set, null too.
type chatChunk struct {
	ID             string            `json:"id"`
	Object         string            `json:"object"`
	Created        int64             `json:"created"`
	Model          string            `json:"model"`
	Choices        []chatChunkChoice `json:"choices"`
	Usage          any               `json:"usage,omitempty"`
	Fingerprint    *string           `json:"system_fingerprint,omitempty"`
	PromptTokenIDs json.RawMessage   `json:"prompt_token_ids,omitempty"` // with PromptText of the first event
	PromptText     json.RawMessage   `json:"prompt_text,omitempty"`
}

type chatChunkChoice struct {
	Index    int             `json:"index"`
	Delta    chatDelta       `json:"delta"`
	Logprobs *chatLogprobs   `json:"logprobs"`
	Finish   *string         `json:"finish_reason"`
	Stop     *any            `json:"stop_reason,omitempty"` // nil until the end; null is a value there
	TokenIDs json.RawMessage `json:"token_ids,omitempty"`   // of all but the first
}

// chatDelta is what one event adds to a message.
type chatDelta struct {
	Role      string      `json:"role,omitempty"`
	Content   *string     `json:"content,omitempty"`
	Reasoning *string     `json:"reasoning,omitempty"`
	ToolCalls []toolDelta `json:"tool_calls,omitempty"`
}

type toolDelta struct {
	Index    int           `json:"index"`
	ID       string        `json:"id,omitempty"`
	Type     string        `json:"type,omitempty"`
	Function functionDelta `json:"function"`
}

type functionDelta struct {
	Name      string  `json:"name,omitempty"`
	Arguments *string `json:"arguments,omitempty"`
}

func (d *chatDelta) empty() bool {
	return d.Content == nil && d.Reasoning == nil && len(d.ToolCalls) == 0
}
