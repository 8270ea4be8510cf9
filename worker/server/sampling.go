package server

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"roundhouse/worker"
)

// Bounds of what one request may ask for.
const (
	maxChoices   = 128
	maxStops     = 16
	maxStopBytes = 1 << 10
	maxStopIDs   = 1 << 10
	maxBias      = 1 << 10
	maxBadWords  = 1 << 10
	maxProbes    = 128
	maxSalt      = 128
	maxUser      = 512
	maxMetadata  = 16 << 10 // 16 entries of a key and 512 characters, and then some
)

// stringList is a string or a list of strings.
type stringList []string

// UnmarshalJSON takes either form.
func (l *stringList) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var s string
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		*l = stringList{s}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(l))
}

// samplingFields are the fields that chat and completion requests share.
type samplingFields struct {
	N                 *int                       `json:"n"`
	Temperature       *float64                   `json:"temperature"`
	TopP              *float64                   `json:"top_p"`
	TopK              *int                       `json:"top_k,wide"`
	MinP              *float64                   `json:"min_p"`
	Seed              *int64                     `json:"seed"`
	Presence          *float64                   `json:"presence_penalty"`
	Frequency         *float64                   `json:"frequency_penalty"`
	Repetition        *float64                   `json:"repetition_penalty"`
	LogitBias         map[string]json.RawMessage `json:"logit_bias"`
	BadWords          []string                   `json:"bad_words"`
	AllowedIDs        []int                      `json:"allowed_token_ids"`
	Stop              stringList                 `json:"stop"`
	StopIDs           []int                      `json:"stop_token_ids"`
	IncludeStop       bool                       `json:"include_stop_str_in_output"`
	IgnoreEOS         bool                       `json:"ignore_eos"`
	MinTokens         int                        `json:"min_tokens"`
	MaxTokens         *int                       `json:"max_tokens,wide"`
	SkipSpecial       *bool                      `json:"skip_special_tokens"`
	SpacesBetween     *bool                      `json:"spaces_between_special_tokens"`
	TruncatePrompt    *int                       `json:"truncate_prompt_tokens"`
	TruncationSide    string                     `json:"truncation_side"`
	PromptLogprobs    *int                       `json:"prompt_logprobs,number"`
	LogprobIDs        []int                      `json:"logprob_token_ids"`
	ReturnTokenIDs    bool                       `json:"return_token_ids"`
	TokensAsIDs       bool                       `json:"return_tokens_as_token_ids"`
	CacheSalt         *string                    `json:"cache_salt"`
	Priority          int                        `json:"priority"`
	RequestID         string                     `json:"request_id"`
	StreamInterval    *int                       `json:"stream_interval"`
	PromptText        bool                       `json:"return_prompt_text"`
	ThinkingBudget    *int                       `json:"thinking_token_budget,number"`
	RepetitionStop    *repetition                `json:"repetition_detection"`
	Stream            bool                       `json:"stream"`
	StreamOptions     *streamOptions             `json:"stream_options"`
	Resume            *resumeField               `json:"roundhouse_resume"`
	User              *string                    `json:"user"`
	Metadata          json.RawMessage            `json:"metadata"`
	ResponseFormat    json.RawMessage            `json:"response_format"`
	StructuredOutputs json.RawMessage            `json:"structured_outputs"`
	GuidedJSON        json.RawMessage            `json:"guided_json"`
	GuidedRegex       *string                    `json:"guided_regex"`
	GuidedChoice      []string                   `json:"guided_choice"`
	GuidedGrammar     *string                    `json:"guided_grammar"`
	beamFields
	refused
}

// streamOptions are what a stream brings besides text.
type streamOptions struct {
	IncludeUsage    bool `json:"include_usage"`
	ContinuousUsage bool `json:"continuous_usage_stats"`
}

// refused are fields that change what the model sees and that this engine, as
// a vLLM without the flags for them, cannot honour. What vLLM ignores, or what
// changes no answer here (transfers of caches, routed experts), is not read.
type refused struct {
	PromptEmbeds    json.RawMessage `json:"prompt_embeds"`
	MMProcessor     map[string]any  `json:"mm_processor_kwargs"`
	MediaIO         map[string]any  `json:"media_io_kwargs"`
	RequestTemplate *string         `json:"chat_template"`
}

func (f *refused) check() *apiError {
	switch {
	case f.PromptEmbeds != nil:
		return badValue("prompt_embeds", "You must set `--enable-prompt-embeds` to input `prompt_embeds`, and this engine has no such input; send text or token ids.")
	case len(f.MMProcessor) > 0:
		return badValue("mm_processor_kwargs", "Per-request mm_processor_kwargs are not taken; leave them out.")
	case len(f.MediaIO) > 0:
		return badValue("media_io_kwargs", "Per-request media_io_kwargs are not taken; leave them out.")
	case f.RequestTemplate != nil:
		return badValue("", "Chat template is passed with request, but --trust-request-chat-template is not set. Refused request with untrusted chat template.")
	}
	return nil
}

// check refuses values that no request may have, in vLLM's words and with the
// parameter that vLLM names, which for most is none; most is how long a context
// may be.
func (f *samplingFields) check(most int) *apiError {
	if err := f.refused.check(); err != nil {
		return err
	}
	if err := f.checkNumbers(most); err != nil {
		return err
	}
	if err := f.RepetitionStop.check(); err != nil {
		return err
	}
	if err := f.checkBeams(); err != nil {
		return err
	}
	switch {
	case f.StreamOptions != nil && !f.Stream:
		return badValue("stream_options", "Stream options can only be defined when `stream=True`.")
	case value(f.PromptLogprobs, 0) < -1:
		return badValue("prompt_logprobs", "`prompt_logprobs` must be a positive value or -1.")
	case f.PromptLogprobs != nil && f.Stream && *f.PromptLogprobs != 0:
		return badValue("prompt_logprobs", "`prompt_logprobs` are not available when `stream=True`.")
	case f.CacheSalt != nil && *f.CacheSalt == "":
		return badValue("cache_salt", "Parameter 'cache_salt' must be a non-empty string if provided.")
	case f.CacheSalt != nil && (len(*f.CacheSalt) > maxSalt || strings.ContainsAny(*f.CacheSalt, "@/\\\x00")):
		return badValue("cache_salt", "Parameter 'cache_salt' must be at most %d characters and must not contain '@', '/', '\\\\', or NUL.", maxSalt)
	case len(value(f.User, "")) > maxUser:
		return badValue("user", "user may have at most %d bytes, got %d", maxUser, len(*f.User))
	case len(f.Metadata) > maxMetadata:
		return badValue("metadata", "metadata may have at most %d bytes, got %d", maxMetadata, len(f.Metadata))
	case f.Resume != nil && (value(f.N, 1) != 1 || f.Resume.ID == "" || len(f.Resume.ID) > 128):
		return badValue("roundhouse_resume", "only a stream with one choice and an id can be resumed")
	}
	if len(f.Stop) > maxStops {
		return badShape("too_long", "body.stop", fmt.Sprintf("List should have at most %d items after validation, not %d", maxStops, len(f.Stop)))
	}
	for _, s := range f.Stop {
		switch {
		case s == "":
			return badValue("", "stop cannot contain an empty string.")
		case len(s) > maxStopBytes:
			return badValue("stop", "a stop string may have at most %d bytes, got %d", maxStopBytes, len(s))
		}
	}
	return nil
}

func (f *samplingFields) checkNumbers(most int) *apiError {
	bad := func(v *float64, least, most float64) bool { return v != nil && !(*v >= least && *v <= most) }
	switch {
	case f.N != nil && *f.N < 1:
		return badValue("", "n must be at least 1, got %d.", *f.N)
	case f.N != nil && *f.N > maxChoices && !f.UseBeamSearch:
		return badValue("", "n must be at most %d, got %d.", maxChoices, *f.N)
	case f.Temperature != nil && *f.Temperature < 0:
		return badValue("temperature", "temperature must be non-negative, got %v.", *f.Temperature)
	case bad(f.Temperature, 0, 2):
		return badValue("temperature", "temperature must be in [0, 2], got %v.", *f.Temperature)
	case f.TopP != nil && !(*f.TopP > 0 && *f.TopP <= 1):
		return badValue("top_p", "top_p must be in (0, 1], got %v.", *f.TopP)
	case f.TopK != nil && *f.TopK < -1:
		return badValue("", "top_k must be 0 (disable), or at least 1, got %d.", *f.TopK)
	case bad(f.MinP, 0, 1):
		return badValue("", "min_p must be in [0, 1], got %v.", *f.MinP)
	case bad(f.Presence, -2, 2):
		return badValue("", "presence_penalty must be in [-2, 2], got %v.", *f.Presence)
	case bad(f.Frequency, -2, 2):
		return badValue("", "frequency_penalty must be in [-2, 2], got %v.", *f.Frequency)
	case f.Repetition != nil && !(*f.Repetition > 0):
		return badValue("", "repetition_penalty must be greater than zero, got %v.", *f.Repetition)
	case f.Repetition != nil && *f.Repetition > math.MaxFloat32:
		return badValue("", "repetition_penalty must be a finite number, got %v.", *f.Repetition)
	case f.MinTokens < 0:
		return badValue("", "min_tokens must be greater than or equal to 0, got %d.", f.MinTokens)
	case f.StreamInterval != nil && *f.StreamInterval < 1:
		return badShape("greater_than_equal", "body.stream_interval", "Input should be greater than or equal to 1")
	case f.TruncatePrompt != nil && *f.TruncatePrompt < -1:
		return badShape("greater_than_equal", "body.truncate_prompt_tokens", "Input should be greater than or equal to -1")
	case f.TruncatePrompt != nil && *f.TruncatePrompt > most:
		return badValue("truncate_prompt_tokens", "truncate_prompt_tokens=%d cannot be greater than max_model_len = %d. Please request a smaller truncation size.", *f.TruncatePrompt, most)
	case f.TruncationSide != "" && f.TruncationSide != "left" && f.TruncationSide != "right":
		return badShape("literal_error", "body.truncation_side", "Input should be 'left' or 'right'")
	}
	return nil
}

func value[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// params turns the fields into the engine's parameters. maxTokens is settled
// later, when the prompt's length is known.
func (s *Server) params(f *samplingFields) (worker.Params, textOptions, *apiError) {
	d := s.cfg.Defaults
	p := worker.Params{
		N: value(f.N, 1), MinTokens: f.MinTokens,
		Temperature: float32(value(f.Temperature, value(d.Temperature, 1))),
		TopP:        float32(value(f.TopP, value(d.TopP, 1))),
		TopK:        int32(min(math.MaxInt32, max(0, value(f.TopK, value(d.TopK, 0))))),
		MinP:        float32(value(f.MinP, value(d.MinP, 0))),
		Presence:    float32(value(f.Presence, 0)),
		Frequency:   float32(value(f.Frequency, 0)),
		Repetition:  float32(value(f.Repetition, value(d.Repetition, 1))),
		IgnoreEOS:   f.IgnoreEOS,
		Logprobs:    -1, PromptLogprobs: -1,
	}
	if p.Temperature < 1e-5 {
		p.Temperature = 0
	}
	if p.N > 1 && p.Temperature == 0 && !f.UseBeamSearch {
		return p, textOptions{}, badValue("", "n must be 1 when using greedy sampling, got %d.", p.N)
	}
	if f.Seed != nil {
		p.Seed = uint64(*f.Seed)
	} else {
		p.Seed = s.seeds.next()
	}
	f.TokensAsIDs = f.TokensAsIDs || s.cfg.TokensAsIDs
	text := textOptions{
		stops: f.Stop, includeStop: f.IncludeStop, skipSpecial: value(f.SkipSpecial, true), minTokens: f.MinTokens, repeats: f.RepetitionStop,
	}
	if err := s.tokenParams(f, &p); err != nil {
		return p, text, err
	}
	if f.PromptLogprobs != nil {
		if err := s.checkLogprobs("prompt_logprobs", "prompt", f.PromptLogprobs); err != nil {
			return p, text, err
		}
		p.PromptLogprobs = *f.PromptLogprobs
	}
	return p, text, nil
}

// checkLogprobs checks how many candidates a field asks for of each token that
// is sampled, or of the prompt; -1: the whole vocabulary.
func (s *Server) checkLogprobs(field, of string, n *int) *apiError {
	asked := value(n, 0)
	if asked == -1 {
		asked = s.cfg.Vocab
	}
	if asked > s.cfg.MaxLogprobs {
		return badValue(field, "Requested %s logprobs of %d, which is greater than max allowed: %d", of, asked, s.cfg.MaxLogprobs)
	}
	return nil
}

// tokenParams settles what names tokens, all of which must exist.
func (s *Server) tokenParams(f *samplingFields, p *worker.Params) *apiError {
	vocab := s.cfg.Vocab
	ids := func(param string, from []int, most int) ([]int32, *apiError) {
		if len(from) > most {
			return nil, badValue(param, "%s may name at most %d tokens, got %d", param, most, len(from))
		}
		var out []int32
		for _, id := range from {
			if id < 0 || id >= vocab {
				return nil, badValue(param, "%s contains token id %d, which is out of the vocabulary (0 to %d)", param, id, vocab-1)
			}
			out = append(out, int32(id))
		}
		return out, nil
	}
	var err *apiError
	if p.StopIDs, err = ids("stop_token_ids", f.StopIDs, maxStopIDs); err != nil {
		return err
	}
	if p.ProbeIDs, err = ids("logprob_token_ids", f.LogprobIDs, maxProbes); err != nil {
		return err
	}
	if f.AllowedIDs != nil {
		if len(f.AllowedIDs) == 0 {
			return badValue("allowed_token_ids", "allowed_token_ids is not None and empty!")
		}
		if p.Allowed, err = ids("allowed_token_ids", f.AllowedIDs, vocab); err != nil {
			return err
		}
	}
	if len(f.LogitBias) > maxBias {
		return badValue("logit_bias", "logit_bias may name at most %d tokens, got %d", maxBias, len(f.LogitBias))
	}
	for name, v := range f.LogitBias {
		bias, floatErr := readFloat(v)
		if floatErr != nil || string(v) == "null" {
			return badShape("float_parsing", "body.logit_bias."+printable(name, 32), "Input should be a valid number")
		}
		id, convErr := strconv.Atoi(name)
		if convErr != nil || id < 0 || id >= vocab {
			return badValue("logit_bias", "token_id(s) [%.32q] in logit_bias contain out-of-vocab token ids. Vocabulary size: %d", name, vocab)
		}
		if p.Bias == nil {
			p.Bias = map[int32]float32{}
		}
		p.Bias[int32(id)] = float32(min(100, max(-100, bias)))
	}
	return s.badWords(f, p)
}

// badWords encodes each word as it stands and with a space before it, as it
// stands inside a text.
func (s *Server) badWords(f *samplingFields, p *worker.Params) *apiError {
	if len(f.BadWords) > maxBadWords {
		return badValue("bad_words", "bad_words may have at most %d entries, got %d", maxBadWords, len(f.BadWords))
	}
	for _, w := range f.BadWords {
		if w == "" || len(w) > maxStopBytes {
			return badValue("", "bad_words cannot contain an empty string or one of more than %d bytes", maxStopBytes)
		}
		for _, spelled := range []string{w, " " + w} {
			if ids := s.encode(spelled, false, false); len(ids) > 0 {
				p.BadWords = append(p.BadWords, ids)
			}
		}
	}
	return nil
}
