package server

import (
	"encoding/json"
	"net/http"
)

// maxChats bounds the chats of one request.
const maxChats = 256

// newBatch takes several chats in one body, which share all other fields. Each
// is a choice of the answer.
func (s *Server) newBatch(r *http.Request, f *chatRequest) (*chat, *apiError) {
	list, ok := decoded[[]json.RawMessage](f.Messages)
	switch {
	case f.Messages == nil:
		return nil, badShape("missing", "body.messages", "Field required")
	case !ok:
		return nil, badShape("list_type", "body.messages", "Input should be a valid list")
	case len(list) == 0:
		return nil, badShape("too_short", "body.messages", "List should have at least 1 item after validation, not 0")
	case len(list) > maxChats:
		return nil, badShape("too_long", "body.messages", "List should have at most 256 items after validation")
	case f.UseBeamSearch:
		return nil, badValue("use_beam_search", "Batch chat completions do not support beam search. Please set `use_beam_search` to False.")
	case value(f.N, 1) != 1:
		return nil, badValue("n", "Batch chat completions do not support `n > 1`. Please set `n` to 1.")
	}
	var whole *chat
	for i, messages := range list {
		one := *f
		one.Messages, one.PromptLogprobs, one.PromptText = messages, nil, false
		one.Stream, one.StreamOptions, one.Tools, one.ToolChoice = false, nil, nil, nil // not of this route
		if string(messages) == "null" || messages[0] != '[' {
			return nil, badShape("list_type", at("body.messages", i), "Input should be a valid list")
		}
		c, err := s.newChat(r, &one)
		if err != nil {
			return nil, err
		}
		if whole == nil {
			whole = c
			continue
		}
		whole.reqs = append(whole.reqs, c.reqs...)
		whole.readers = append(whole.readers, c.readers...)
		whole.echoes = append(whole.echoes, c.echoes...)
		whole.prompt += c.prompt
	}
	return whole, nil
}
