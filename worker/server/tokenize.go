package server

import (
	"encoding/json"
	"net/http"
)

type tokenizeRequest struct {
	Prompt       *string         `json:"prompt"`
	AddSpecial   *bool           `json:"add_special_tokens"`
	ReturnTokens bool            `json:"return_token_strs"`
	Messages     json.RawMessage `json:"messages"`
	chatFields
}

// chatFields are those of a chat that change its prompt.
type chatFields struct {
	AddGenerationPrompt *bool                      `json:"add_generation_prompt"`
	ContinueFinal       bool                       `json:"continue_final_message"`
	Tools               json.RawMessage            `json:"tools"`
	TemplateArguments   map[string]json.RawMessage `json:"chat_template_kwargs"`
	RequestTemplate     *string                    `json:"chat_template"`
}

func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	var f struct {
		Model string `json:"model"`
		tokenizeRequest
	}
	if err := readBody(r, s.cfg.BodyLimit, &f); err != nil {
		writeError(w, err)
		return
	}
	tokens, err := s.tokensOf(f.Model, &f.tokenizeRequest)
	if err != nil {
		writeError(w, err)
		return
	}
	var names []string
	if f.ReturnTokens {
		names = []string{}
		for _, id := range tokens {
			names = append(names, s.cfg.Tokenizer.Token(id))
		}
	}
	if tokens == nil {
		tokens = []int32{}
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"count": len(tokens), "max_model_len": s.cfg.MaxModelLen, "tokens": tokens, "token_strs": names,
	})
}

func (s *Server) tokensOf(model string, f *tokenizeRequest) ([]int32, *apiError) {
	if _, err := s.model(model); err != nil {
		return nil, err
	}
	switch {
	case f.Prompt != nil && f.Messages == nil:
		if err := s.checkLength(*f.Prompt); err != nil {
			return nil, err
		}
		return s.encode(*f.Prompt, value(f.AddSpecial, true), true), nil
	case f.Messages == nil:
		return nil, badShape("missing", "body.prompt", "Field required")
	case f.RequestTemplate != nil:
		return nil, (&refused{RequestTemplate: f.RequestTemplate}).check()
	}
	p, err := s.renderChat(&chatRequest{
		Messages: f.Messages, AddGenerationPrompt: f.AddGenerationPrompt, ContinueFinal: f.ContinueFinal,
		Tools: f.Tools, TemplateArguments: f.TemplateArguments, AddSpecial: value(f.AddSpecial, false),
	})
	if err != nil {
		return nil, err
	}
	return p.tokens, nil
}

func (s *Server) detokenize(w http.ResponseWriter, r *http.Request) {
	var f struct {
		Model  string  `json:"model"`
		Tokens []int32 `json:"tokens"`
	}
	if err := readBody(r, s.cfg.BodyLimit, &f); err != nil {
		writeError(w, err)
		return
	}
	if _, err := s.model(f.Model); err != nil {
		writeError(w, err)
		return
	}
	if f.Tokens == nil {
		writeError(w, badShape("missing", "body.tokens", "Field required"))
		return
	}
	var known []int32
	for i, id := range f.Tokens {
		if id < 0 {
			writeError(w, badShape("greater_than_equal", at("body.tokens", i), "Input should be greater than or equal to 0"))
			return
		}
		if int(id) < s.cfg.Vocab { // what is beyond has no text
			known = append(known, id)
		}
	}
	writeJSON(w, http.StatusOK, map[string]string{"prompt": s.cfg.Tokenizer.Decode(known, false)})
}
