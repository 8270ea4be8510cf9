package server

import (
	"unicode/utf8"

	"roundhouse/worker/tokenizer"
)

// model checks the name that a client asked for.
func (s *Server) model(name string) (string, *apiError) {
	if name == "" {
		return s.cfg.Models[0], nil
	}
	for _, m := range s.cfg.Models {
		if m == name {
			return m, nil
		}
	}
	if s.cfg.Engine.Adapter(name) != nil {
		return name, nil
	}
	return "", notFound("model", "The model `%.256s` does not exist.", name)
}

// encode turns text into tokens.
func (s *Server) encode(text string, special, parse bool) []int32 {
	return s.cfg.Tokenizer.Encode(text, tokenizer.EncodeOptions{AddSpecial: special, ParseSpecial: parse})
}

// checkLength refuses, before any work on it, a text that cannot fit because
// even the longest tokens would be too many.
func (s *Server) checkLength(text string) *apiError {
	most := s.cfg.MaxModelLen * s.longest
	if len(text) <= most {
		return nil
	}
	if n := utf8.RuneCountInString(text); n > most {
		return badValue("input_text", "This model's maximum context length is %d tokens. However, your prompt contains %d characters (more than %d characters, which is the upper bound for %d input tokens). Please reduce the length of the input prompt.", s.cfg.MaxModelLen, n, most, s.cfg.MaxModelLen)
	}
	return nil
}

// truncate cuts a prompt to what the request asked for.
func (s *Server) truncate(tokens []int32, f *samplingFields) []int32 {
	if f.TruncatePrompt == nil {
		return tokens
	}
	keep := *f.TruncatePrompt
	if keep == -1 {
		keep = s.cfg.MaxModelLen - 1
	}
	if len(tokens) <= keep {
		return tokens
	}
	if f.TruncationSide == "right" {
		return tokens[:keep]
	}
	return tokens[len(tokens)-keep:]
}

// room settles how many tokens a request with this prompt may generate: what
// it asked for in the field named, as far as the context has them left, or all
// that it has.
func (s *Server) room(prompt int, wanted *int, field string) (int, *apiError) {
	if prompt == 0 {
		return 0, badValue("", "The decoder prompt cannot be empty")
	}
	most := s.cfg.MaxModelLen
	if wanted != nil && *wanted > most {
		return 0, badValue(field, "%s=%d cannot be greater than max_model_len=%d. Please request fewer output tokens.", field, *wanted, most)
	}
	if prompt > most {
		return 0, badValue("input_tokens", "This model's maximum context length is %d tokens. However, your prompt contains %d input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt.", most, prompt)
	}
	n := min(value(wanted, most), most-prompt)
	if n < 1 {
		return 0, badValue("max_tokens", "max_tokens must be at least 1, got %d.", n)
	}
	return n, nil
}
