package campaign

// endpoint is a path with what a good request to it holds, and its further fields.
type endpoint struct {
	path   string
	good   map[string]any
	fields []string
}

var chatMessages = []any{map[string]any{"role": "user", "content": "Count from 1 to 9 by 1."}}

var endpoints = []endpoint{
	{"/v1/chat/completions", map[string]any{"messages": chatMessages}, append(chatFields, sampling...)},
	{"/v1/completions", map[string]any{"prompt": "one two"}, append(textFields, sampling...)},
	{"/v1/responses", map[string]any{"input": "one two"}, responseFields},
	{"/v1/messages", map[string]any{"messages": chatMessages, "max_tokens": 8}, messageFields},
	{"/v1/messages/count_tokens", map[string]any{"messages": chatMessages}, messageFields},
	{"/v1/embeddings", map[string]any{"input": "one two"}, []string{"input", "messages", "encoding_format", "dimensions", "truncate_prompt_tokens", "priority", "user"}},
	{"/v1/score", map[string]any{"text_1": "one", "text_2": "two"}, []string{"text_1", "text_2", "queries", "documents", "truncate_prompt_tokens"}},
	{"/v1/rerank", map[string]any{"query": "one", "documents": []any{"two", "three"}}, []string{"query", "documents", "top_n", "truncate_prompt_tokens"}},
	{"/classify", map[string]any{"input": "one"}, []string{"input", "truncate_prompt_tokens"}},
	{"/pooling", map[string]any{"input": "one"}, []string{"input", "messages", "encoding_format", "dimensions"}},
	{"/tokenize", map[string]any{"prompt": "one two"}, []string{"prompt", "messages", "add_special_tokens", "return_token_strs", "add_generation_prompt", "continue_final_message", "tools", "chat_template_kwargs"}},
	{"/detokenize", map[string]any{"tokens": []any{1, 2, 3}}, []string{"tokens"}},
}

// sampling are the fields of numbers that end in the sampler.
var sampling = []string{
	"temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty", "seed", "n", "best_of", "max_tokens", "min_tokens",
	"stop", "stop_token_ids", "bad_words", "allowed_token_ids", "logit_bias", "ignore_eos", "include_stop_str_in_output", "skip_special_tokens", "spaces_between_special_tokens",
	"truncate_prompt_tokens", "prompt_logprobs", "stream", "stream_options", "response_format", "structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar",
	"return_token_ids", "return_tokens_as_token_ids", "cache_salt", "priority", "request_id", "user", "use_beam_search", "length_penalty", "logits_processors", "vllm_xargs", "kv_transfer_params",
	"repetition_detection", "thinking_token_budget", "roundhouse_resume",
}

var chatFields = []string{
	"messages", "max_completion_tokens", "logprobs", "top_logprobs", "logprob_token_ids", "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "reasoning_effort",
	"include_reasoning", "echo", "add_generation_prompt", "continue_final_message", "add_special_tokens", "documents", "chat_template", "chat_template_kwargs", "mm_processor_kwargs",
	"service_tier", "store", "metadata", "modalities", "audio", "prediction", "verbosity", "web_search_options",
}

var textFields = []string{"prompt", "prompt_embeds", "suffix", "echo", "logprobs", "add_special_tokens"}

var responseFields = []string{
	"input", "instructions", "max_output_tokens", "max_tool_calls", "temperature", "top_p", "top_k", "top_logprobs", "tools", "tool_choice", "parallel_tool_calls", "text", "reasoning", "include",
	"previous_response_id", "conversation", "background", "store", "stream", "truncation", "service_tier", "metadata", "user", "prompt", "safety_identifier", "cache_salt", "enable_response_messages",
}

var messageFields = []string{
	"messages", "system", "max_tokens", "temperature", "top_p", "top_k", "stop_sequences", "stream", "tools", "tool_choice", "thinking", "metadata", "service_tier", "context_management",
	"output_config", "output_format", "container", "mcp_servers",
}
