package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// MaxDepth is how deep the JSON of a request may nest.
const MaxDepth = 64

// Span is a part of a body: the bytes from From up to To. The zero Span says
// that there is no such part.
type Span struct{ From, To int }

// Set reports whether the part is there.
func (s Span) Set() bool { return s.To > s.From }

// Of returns the bytes of the part.
func (s Span) Of(body []byte) []byte { return body[s.From:s.To] }

// Peek is what the door must know of a request's JSON body. It is found in
// one pass, without decoding what is not asked for.
type Peek struct {
	Open  int  // where the first key of the object would stand: just after "{"
	Empty bool // the object has no keys

	Model       string
	ModelSpan   Span // the quoted value
	Stream      bool
	MaxTokens   int64 // the least of max_tokens, max_completion_tokens, max_output_tokens; 0: not said
	N           int64 // n or best_of, at least 1
	User        string
	Session     string // previous_response_id
	Prompt      Span   // messages, prompt, input, query or text
	PromptBytes int    // of the text of all of those and of System together
	PromptIDs   int    // token ids among those
	Media       int    // pictures and pieces of sound or film among those, whose bytes are not in PromptBytes
	Pixels      int    // of the pictures whose size is known, which are not in Media
	Items       []Item // of both, those whose places are kept, in the body's order
	System      Span   // system or instructions: it stands before the prompt
	Extra       Span   // tools: they are part of what a prompt is

	StreamOptions  Span // its value
	IncludeUsage   bool // stream_options.include_usage
	ReturnTokenIDs Span // its value
	WantsTokenIDs  bool // return_token_ids is true
	CacheSalt      Span
	Seed           bool
	Tools          bool
	Structured     bool // response_format, guided_*, structured_outputs
	Logprobs       bool
	Echo           bool
	PromptList     bool // prompt is a list of several prompts
	Resume         bool // roundhouse_resume: the door's alone to send
}

// BodyError says what is wrong with a body, and where.
type BodyError struct {
	At    int    // the byte
	Param string // the field, where one is to blame
	What  string
}

// Error implements error.
func (e *BodyError) Error() string {
	return fmt.Sprintf("request body, byte %d: %s", e.At, e.What)
}

// PeekBody scans the JSON object in body. It refuses what is not one whole
// JSON object in UTF-8, nests deeper than MaxDepth, or gives a field that the
// door reads twice.
func PeekBody(body []byte, p *Peek) error {
	*p = Peek{N: 1}
	s := scanner{b: body}
	s.space()
	if s.i >= len(body) || body[s.i] != '{' {
		return s.fail("a JSON object is needed")
	}
	s.i++
	p.Open = s.i
	s.space()
	if s.i < len(body) && body[s.i] == '}' {
		s.i++
		p.Empty = true
		return s.end()
	}
	var seen uint64
	for {
		if err := s.field(p, &seen); err != nil {
			return err
		}
		s.space()
		if s.i >= len(body) {
			return s.fail("the object does not end")
		}
		c := body[s.i]
		s.i++
		if c == '}' {
			return s.end()
		}
		if c != ',' {
			s.i--
			return s.fail("a comma or } is needed")
		}
		s.space()
	}
}

// field reads one key and its value.
func (s *scanner) field(p *Peek, seen *uint64) error {
	key, err := s.key()
	if err != nil {
		return err
	}
	id := fieldID(key)
	if id != 0 {
		if *seen&(1<<id) != 0 {
			return &BodyError{At: s.i, Param: string(key), What: fmt.Sprintf("the field %q is given twice", key)}
		}
		*seen |= 1 << id
	}
	from := s.i
	if err := s.value(1); err != nil {
		return err
	}
	return p.take(id, string(fieldNames[id]), Span{from, s.i}, s.b)
}

const (
	fModel = iota + 1
	fStream
	fMaxTokens
	fMaxCompletion
	fMaxOutput
	fN
	fBestOf
	fUser
	fPrevious
	fMessages
	fPrompt
	fInput
	fQuery
	fStreamOptions
	fReturnIDs
	fSalt
	fSeed
	fTools
	fFormat
	fStructured
	fGuidedJSON
	fGuidedRegex
	fGuidedChoice
	fGuidedGrammar
	fLogprobs
	fTopLogprobs
	fEcho
	fResume
	fText
	fDocuments
	fSystem
	fInstructions
)

var fieldNames = [...]string{
	"", "model", "stream", "max_tokens", "max_completion_tokens", "max_output_tokens", "n", "best_of", "user",
	"previous_response_id", "messages", "prompt", "input", "query", "stream_options", "return_token_ids",
	"cache_salt", "seed", "tools", "response_format", "structured_outputs", "guided_json", "guided_regex",
	"guided_choice", "guided_grammar", "logprobs", "top_logprobs", "echo", "roundhouse_resume", "text", "documents",
	"system", "instructions",
}

// fieldID numbers the fields that the door reads; 0 is any other.
func fieldID(key []byte) int {
	switch string(key) {
	case "model":
		return fModel
	case "stream":
		return fStream
	case "max_tokens":
		return fMaxTokens
	case "max_completion_tokens":
		return fMaxCompletion
	case "max_output_tokens":
		return fMaxOutput
	case "n":
		return fN
	case "best_of":
		return fBestOf
	case "user":
		return fUser
	case "previous_response_id":
		return fPrevious
	case "messages":
		return fMessages
	case "prompt":
		return fPrompt
	case "input":
		return fInput
	case "query":
		return fQuery
	case "stream_options":
		return fStreamOptions
	case "return_token_ids":
		return fReturnIDs
	case "cache_salt":
		return fSalt
	case "seed":
		return fSeed
	case "tools":
		return fTools
	case "response_format":
		return fFormat
	case "structured_outputs":
		return fStructured
	case "guided_json":
		return fGuidedJSON
	case "guided_regex":
		return fGuidedRegex
	case "guided_choice":
		return fGuidedChoice
	case "guided_grammar":
		return fGuidedGrammar
	case "logprobs":
		return fLogprobs
	case "top_logprobs":
		return fTopLogprobs
	case "echo":
		return fEcho
	case "roundhouse_resume":
		return fResume
	case "text":
		return fText
	case "documents":
		return fDocuments
	case "system":
		return fSystem
	case "instructions":
		return fInstructions
	}
	return 0
}

// take keeps what is asked for of one field.
func (p *Peek) take(id int, name string, at Span, body []byte) (err error) {
	v := at.Of(body)
	null := string(v) == "null"
	switch id {
	case fModel:
		p.ModelSpan = at
		p.Model, err = text(v, at, name)
	case fStream:
		p.Stream, err = boolean(v, at, name)
	case fMaxTokens, fMaxCompletion, fMaxOutput:
		err = p.takeMax(v, at, name)
	case fN, fBestOf:
		var n int64
		if n, err = integer(v, at, name); err == nil && !null {
			p.N = max(p.N, n)
		}
	case fUser:
		p.User, err = text(v, at, name)
	case fPrevious:
		p.Session, err = text(v, at, name)
	case fMessages, fPrompt, fInput, fQuery, fText, fDocuments:
		if !p.Prompt.Set() {
			p.Prompt = at
		}
		p.measure(at, body)
		p.PromptList = p.PromptList || id == fPrompt && v[0] == '[' && len(v) > 1 && bytes.IndexByte(v[1:], '"') >= 0
		if id == fMessages && v[0] != '[' || (id == fMessages || id == fPrompt) && (null || string(v) == "[]" || string(v) == `""`) {
			err = &BodyError{At: at.From, Param: name, What: fmt.Sprintf("the field %q is empty or of the wrong type", name)}
		}
	case fSystem, fInstructions:
		p.System = at
		p.measure(at, body)
	case fStreamOptions:
		p.StreamOptions = at
		err = p.takeStreamOptions(v, at)
	case fReturnIDs:
		p.ReturnTokenIDs = at
		p.WantsTokenIDs = yes(v)
	case fSalt:
		p.CacheSalt = at
	case fSeed:
		p.Seed = !null
	case fTools:
		p.Extra, p.Tools = at, !null && string(v) != "[]"
	case fFormat:
		p.Structured = p.Structured || !null && !plainFormat(v)
	case fStructured, fGuidedJSON, fGuidedRegex, fGuidedChoice, fGuidedGrammar:
		p.Structured = p.Structured || !null
	case fLogprobs, fTopLogprobs:
		p.Logprobs = p.Logprobs || !null && string(v) != "false"
	case fEcho:
		p.Echo = yes(v)
	case fResume:
		p.Resume = true
	}
	return err
}

// plainFormat reports whether a response_format asks for text without a form.
func plainFormat(v []byte) bool {
	var f struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(v, &f) == nil && f.Type == "text"
}

func (p *Peek) takeMax(v []byte, at Span, name string) error {
	n, err := integer(v, at, name)
	if err == nil && n > 0 && (p.MaxTokens == 0 || n < p.MaxTokens) {
		p.MaxTokens = n
	}
	return err
}

func (p *Peek) takeStreamOptions(v []byte, at Span) error {
	if string(v) == "null" {
		p.StreamOptions = at
		return nil
	}
	var o struct {
		IncludeUsage json.RawMessage `json:"include_usage"`
	}
	bad := v[0] != '{' || json.Unmarshal(v, &o) != nil
	if !bad && o.IncludeUsage != nil {
		var err error
		p.IncludeUsage, err = boolean(o.IncludeUsage, at, "stream_options")
		bad = err != nil
	}
	if bad {
		return &BodyError{At: at.From, Param: "stream_options", What: "stream_options must be an object with booleans"}
	}
	return nil
}

func text(v []byte, at Span, name string) (string, error) {
	if string(v) == "null" {
		return "", nil
	}
	if v[0] != '"' {
		return "", &BodyError{At: at.From, Param: name, What: fmt.Sprintf("the field %q must be a string", name)}
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1]), nil
	}
	var s string
	if err := json.Unmarshal(v, &s); err != nil {
		return "", &BodyError{At: at.From, Param: name, What: fmt.Sprintf("the field %q is not a valid string", name)}
	}
	return s, nil
}
