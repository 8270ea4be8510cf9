package server

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

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
	maxSalt      = 512
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
	N                 *int            `json:"n"`
	BestOf            *int            `json:"best_of"`
	Temperature       *float64        `json:"temperature"`
	TopP              *float64        `json:"top_p"`
	TopK              *int            `json:"top_k"`
	MinP              *float64        `json:"min_p"`
	Seed              *int64          `json:"seed"`
	Presence          *float64        `json:"presence_penalty"`
	Frequency         *float64        `json:"frequency_penalty"`
	Repetition        *float64        `json:"repetition_penalty"`
	LogitBias         map[string]any  `json:"logit_bias"`
	BadWords          []string        `json:"bad_words"`
	AllowedIDs        []int           `json:"allowed_token_ids"`
	Stop              stringList      `json:"stop"`
	StopIDs           []int           `json:"stop_token_ids"`
	IncludeStop       bool            `json:"include_stop_str_in_output"`
	IgnoreEOS         bool            `json:"ignore_eos"`
	MinTokens         int             `json:"min_tokens"`
	MaxTokens         *int            `json:"max_tokens"`
	SkipSpecial       *bool           `json:"skip_special_tokens"`
	SpacesBetween     *bool           `json:"spaces_between_special_tokens"`
	TruncatePrompt    *int            `json:"truncate_prompt_tokens"`
	TruncationSide    string          `json:"truncation_side"`
	PromptLogprobs    *int            `json:"prompt_logprobs"`
	LogprobIDs        []int           `json:"logprob_token_ids"`
	ReturnTokenIDs    bool            `json:"return_token_ids"`
	TokensAsIDs       bool            `json:"return_tokens_as_token_ids"`
	CacheSalt         *string         `json:"cache_salt"`
	Priority          int             `json:"priority"`
	RequestID         string          `json:"request_id"`
	UseBeamSearch     bool            `json:"use_beam_search"`
	Stream            bool            `json:"stream"`
	StreamOptions     *streamOptions  `json:"stream_options"`
	Resume            *resumeField    `json:"roundhouse_resume"`
	User              *string         `json:"user"`
	Metadata          json.RawMessage `json:"metadata"`
	ResponseFormat    json.RawMessage `json:"response_format"`
	StructuredOutputs json.RawMessage `json:"structured_outputs"`
	GuidedJSON        json.RawMessage `json:"guided_json"`
	GuidedRegex       *string         `json:"guided_regex"`
	GuidedChoice      []string        `json:"guided_choice"`
	GuidedGrammar     *string         `json:"guided_grammar"`
	refused
}

// streamOptions are what a stream brings besides text.
type streamOptions struct {
	IncludeUsage    bool `json:"include_usage"`
	ContinuousUsage bool `json:"continuous_usage_stats"`
}

// refused are fields of vLLM's and OpenAI's that this engine does not have;
// asking for one of them is answered, never ignored.
type refused struct {
	PromptEmbeds    json.RawMessage `json:"prompt_embeds"`
	KVTransfer      json.RawMessage `json:"kv_transfer_params"`
	ECTransfer      json.RawMessage `json:"ec_transfer_params"`
	RepetitionStop  json.RawMessage `json:"repetition_detection"`
	StreamInterval  *int            `json:"stream_interval"`
	RoutedExperts   *int            `json:"routed_experts_prompt_start"`
	TokenOffsets    bool            `json:"return_token_offsets"`
	PromptText      bool            `json:"return_prompt_text"`
	AssistantMask   bool            `json:"return_assistant_tokens_mask"`
	ThinkingBudget  *int            `json:"thinking_token_budget"`
	MMProcessor     json.RawMessage `json:"mm_processor_kwargs"`
	MediaIO         json.RawMessage `json:"media_io_kwargs"`
	RequestTemplate *string         `json:"chat_template"`
	Functions       json.RawMessage `json:"functions"`
	FunctionCall    json.RawMessage `json:"function_call"`
	Audio           json.RawMessage `json:"audio"`
	WebSearch       json.RawMessage `json:"web_search_options"`
	Modalities      []string        `json:"modalities"`
	Arguments       map[string]any  `json:"vllm_xargs"`
}

func (f *refused) check() *apiError {
	for _, x := range []struct {
		name string
		set  bool
	}{
		{"prompt_embeds", f.PromptEmbeds != nil}, {"kv_transfer_params", f.KVTransfer != nil},
		{"ec_transfer_params", f.ECTransfer != nil}, {"repetition_detection", f.RepetitionStop != nil},
		{"stream_interval", f.StreamInterval != nil && *f.StreamInterval != 1},
		{"routed_experts_prompt_start", f.RoutedExperts != nil},
		{"return_token_offsets", f.TokenOffsets}, {"return_prompt_text", f.PromptText},
		{"return_assistant_tokens_mask", f.AssistantMask}, {"thinking_token_budget", f.ThinkingBudget != nil},
		{"mm_processor_kwargs", f.MMProcessor != nil}, {"media_io_kwargs", f.MediaIO != nil},
		{"functions", f.Functions != nil}, {"function_call", f.FunctionCall != nil}, {"audio", f.Audio != nil},
		{"web_search_options", f.WebSearch != nil}, {"vllm_xargs", len(f.Arguments) > 0},
		{"modalities", slices.ContainsFunc(f.Modalities, func(m string) bool { return m != "text" })},
	} {
		if x.set {
			e := notImplemented("`%s` is not supported by this engine.", x.name)
			e.Param = x.name
			return e
		}
	}
	if f.RequestTemplate != nil {
		return badValue("chat_template", "Chat template is passed with request, but --trust-request-chat-template is not set. Refused request with untrusted chat template.")
	}
	return nil
}

// check refuses values that no request may have, in vLLM's words.
func (f *samplingFields) check() *apiError {
	if err := f.refused.check(); err != nil {
		return err
	}
	if err := f.checkNumbers(); err != nil {
		return err
	}
	switch {
	case f.UseBeamSearch:
		return notImplemented("`use_beam_search` is not supported by this engine.")
	case f.BestOf != nil && *f.BestOf != value(f.N, 1):
		return badValue("best_of", "best_of is not supported, except as n")
	case f.StreamOptions != nil && !f.Stream:
		return badValue("stream_options", "Stream options can only be defined when `stream=True`.")
	case f.PromptLogprobs != nil && f.Stream && *f.PromptLogprobs != 0:
		return badValue("prompt_logprobs", "`prompt_logprobs` are not available when `stream=True`.")
	case f.CacheSalt != nil && (*f.CacheSalt == "" || len(*f.CacheSalt) > maxSalt):
		return badValue("cache_salt", "Parameter 'cache_salt' must be a non-empty string of at most %d bytes if provided.", maxSalt)
	case len(value(f.User, "")) > maxUser:
		return badValue("user", "user may have at most %d bytes, got %d", maxUser, len(*f.User))
	case len(f.Metadata) > maxMetadata:
		return badValue("metadata", "metadata may have at most %d bytes, got %d", maxMetadata, len(f.Metadata))
	case f.Resume != nil && (value(f.N, 1) != 1 || f.Resume.ID == "" || len(f.Resume.ID) > 128):
		return badValue("roundhouse_resume", "only a stream with one choice and an id can be resumed")
	}
	if len(f.Stop) > maxStops {
		return badValue("stop", "at most %d stop strings are allowed, got %d", maxStops, len(f.Stop))
	}
	for _, s := range f.Stop {
		if s == "" || len(s) > maxStopBytes {
			return badValue("stop", "stop cannot contain an empty string or one of more than %d bytes", maxStopBytes)
		}
	}
	return nil
}

func (f *samplingFields) checkNumbers() *apiError {
	bad := func(v *float64, least, most float64) bool { return v != nil && !(*v >= least && *v <= most) }
	switch {
	case f.N != nil && *f.N < 1:
		return badValue("n", "n must be at least 1, got %d.", *f.N)
	case f.N != nil && *f.N > maxChoices:
		return badValue("n", "n must be at most %d, got %d.", maxChoices, *f.N)
	case bad(f.Temperature, 0, 2):
		return badValue("temperature", "temperature must be in [0, 2], got %v.", *f.Temperature)
	case f.TopP != nil && !(*f.TopP > 0 && *f.TopP <= 1):
		return badValue("top_p", "top_p must be in (0, 1], got %v.", *f.TopP)
	case f.TopK != nil && (*f.TopK < -1 || *f.TopK > math.MaxInt32):
		return badValue("top_k", "top_k must be 0 (disable), or at least 1, got %d.", *f.TopK)
	case bad(f.MinP, 0, 1):
		return badValue("min_p", "min_p must be in [0, 1], got %v.", *f.MinP)
	case bad(f.Presence, -2, 2):
		return badValue("presence_penalty", "presence_penalty must be in [-2, 2], got %v.", *f.Presence)
	case bad(f.Frequency, -2, 2):
		return badValue("frequency_penalty", "frequency_penalty must be in [-2, 2], got %v.", *f.Frequency)
	case f.Repetition != nil && !(*f.Repetition > 0 && *f.Repetition <= math.MaxFloat32):
		return badValue("repetition_penalty", "repetition_penalty must be greater than zero, got %v.", *f.Repetition)
	case f.MinTokens < 0:
		return badValue("min_tokens", "min_tokens must be greater than or equal to 0, got %d.", f.MinTokens)
	case f.MaxTokens != nil && *f.MaxTokens < 0:
		return badValue("max_tokens", "max_tokens must be at least 1, got %d.", *f.MaxTokens)
	case f.TruncatePrompt != nil && *f.TruncatePrompt < -1:
		return badValue("truncate_prompt_tokens", "truncate_prompt_tokens must be at least -1, got %d.", *f.TruncatePrompt)
	case f.TruncationSide != "" && f.TruncationSide != "left" && f.TruncationSide != "right":
		return badValue("truncation_side", "truncation_side must be left or right, got %.32q.", f.TruncationSide)
	case value(f.N, 1) > 1 && f.Temperature != nil && *f.Temperature < 1e-5:
		return badValue("n", "n must be 1 when using greedy sampling, got %d.", *f.N)
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
		TopK:        int32(max(0, value(f.TopK, value(d.TopK, 0)))),
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
	if p.N > 1 && p.Temperature == 0 {
		return p, textOptions{}, badValue("n", "n must be 1 when using greedy sampling, got %d.", p.N)
	}
	if f.Seed != nil {
		p.Seed = uint64(*f.Seed)
	} else {
		p.Seed = s.seeds.next()
	}
	f.TokensAsIDs = f.TokensAsIDs || s.cfg.TokensAsIDs
	text := textOptions{
		stops: f.Stop, includeStop: f.IncludeStop, skipSpecial: value(f.SkipSpecial, true), minTokens: f.MinTokens,
	}
	if err := s.tokenParams(f, &p); err != nil {
		return p, text, err
	}
	if f.PromptLogprobs != nil {
		n := *f.PromptLogprobs
		if n == -1 {
			return p, text, badValue("prompt_logprobs", "prompt_logprobs of the whole vocabulary are not supported")
		}
		if n < 0 || n > s.cfg.MaxLogprobs {
			return p, text, badValue("prompt_logprobs", "Requested prompt logprobs of %d, which is greater than max allowed: %d", n, s.cfg.MaxLogprobs)
		}
		p.PromptLogprobs = n
	}
	return p, text, nil
}

// checkLogprobs checks how many candidates a field asks for.
func (s *Server) checkLogprobs(field string, n *int) *apiError {
	switch {
	case n == nil:
	case *n < 0:
		return badValue(field, "`%s` must be a positive value.", field)
	case *n > s.cfg.MaxLogprobs:
		return badValue(field, "Requested sample logprobs of %d, which is greater than max allowed: %d", *n, s.cfg.MaxLogprobs)
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
		id, convErr := strconv.Atoi(name)
		bias, ok := v.(float64)
		if convErr != nil || !ok || id < 0 || id >= vocab {
			return badValue("logit_bias", "token_id(s) [%.32q] in logit_bias contain out-of-vocab token ids or values that are not numbers. Vocabulary size: %d", name, vocab)
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
			return badValue("bad_words", "bad_words cannot contain an empty string or one of more than %d bytes", maxStopBytes)
		}
		for _, spelled := range []string{w, " " + w} {
			if ids := s.encode(spelled, false, false); len(ids) > 0 {
				p.BadWords = append(p.BadWords, ids)
			}
		}
	}
	return nil
}
