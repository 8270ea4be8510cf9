package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"unicode/utf8"
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
	PromptBytes int    // of all of those together
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
	if !utf8.Valid(body) {
		return &BodyError{What: "is not valid UTF-8"}
	}
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
	var seen uint32
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
func (s *scanner) field(p *Peek, seen *uint32) error {
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
)

var fieldNames = [...]string{
	"", "model", "stream", "max_tokens", "max_completion_tokens", "max_output_tokens", "n", "best_of", "user",
	"previous_response_id", "messages", "prompt", "input", "query", "stream_options", "return_token_ids",
	"cache_salt", "seed", "tools", "response_format", "structured_outputs", "guided_json", "guided_regex",
	"guided_choice", "guided_grammar", "logprobs", "top_logprobs", "echo", "roundhouse_resume", "text", "documents",
}

func fieldID(key []byte) int {
	for i := 1; i < len(fieldNames); i++ {
		if string(key) == fieldNames[i] {
			return i
		}
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
		p.PromptBytes += len(v)
		p.PromptList = p.PromptList || id == fPrompt && v[0] == '[' && len(v) > 1 && bytes.IndexByte(v[1:], '"') >= 0
		if id == fMessages && v[0] != '[' || (id == fMessages || id == fPrompt) && (null || string(v) == "[]" || string(v) == `""`) {
			err = &BodyError{At: at.From, Param: name, What: fmt.Sprintf("the field %q is empty or of the wrong type", name)}
		}
	case fStreamOptions:
		p.StreamOptions = at
		err = p.takeStreamOptions(v, at)
	case fReturnIDs:
		p.ReturnTokenIDs = at
		p.WantsTokenIDs = string(v) == "true"
	case fSalt:
		p.CacheSalt = at
	case fSeed:
		p.Seed = !null
	case fTools:
		p.Extra, p.Tools = at, !null && string(v) != "[]"
	case fFormat:
		p.Structured = p.Structured || !null && !bytes.Contains(v, []byte(`"text"`))
	case fStructured, fGuidedJSON, fGuidedRegex, fGuidedChoice, fGuidedGrammar:
		p.Structured = p.Structured || !null
	case fLogprobs, fTopLogprobs:
		p.Logprobs = p.Logprobs || !null && string(v) != "false"
	case fEcho:
		p.Echo = string(v) == "true"
	case fResume:
		p.Resume = true
	}
	return err
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
		IncludeUsage bool `json:"include_usage"`
	}
	if v[0] != '{' || json.Unmarshal(v, &o) != nil {
		return &BodyError{At: at.From, Param: "stream_options", What: "stream_options must be an object with booleans"}
	}
	p.IncludeUsage = o.IncludeUsage
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

func boolean(v []byte, at Span, name string) (bool, error) {
	switch string(v) {
	case "true":
		return true, nil
	case "false", "null":
		return false, nil
	}
	return false, &BodyError{At: at.From, Param: name, What: fmt.Sprintf("the field %q must be true or false", name)}
}

// integer reads a whole number that fits in 53 bits; null is 0.
func integer(v []byte, at Span, name string) (int64, error) {
	if string(v) == "null" {
		return 0, nil
	}
	var n int64
	digits := v
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	ok := len(digits) > 0 && len(digits) <= 15
	for _, c := range digits {
		if c < '0' || c > '9' {
			ok = false
			break
		}
		n = n*10 + int64(c-'0')
	}
	if !ok {
		return 0, &BodyError{At: at.From, Param: name, What: fmt.Sprintf("the field %q must be a whole number", name)}
	}
	if v[0] == '-' {
		n = -n
	}
	return n, nil
}

// scanner walks over JSON without making anything of it.
type scanner struct {
	b []byte
	i int
}

func (s *scanner) fail(what string) error { return &BodyError{At: s.i, What: what} }

func (s *scanner) end() error {
	s.space()
	if s.i != len(s.b) {
		return s.fail("something follows the JSON object")
	}
	return nil
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\n', '\r', '\t':
			s.i++
		default:
			return
		}
	}
}

// key reads a quoted name and its colon, and the space around it.
func (s *scanner) key() ([]byte, error) {
	if s.i >= len(s.b) || s.b[s.i] != '"' {
		return nil, s.fail("a quoted name is needed")
	}
	from := s.i + 1
	escaped, err := s.str()
	if err != nil {
		return nil, err
	}
	key := s.b[from : s.i-1]
	if escaped {
		// An escaped name could hide one that the door reads ("mod\u0065l").
		var plain string
		if json.Unmarshal(s.b[from-1:s.i], &plain) != nil {
			return nil, s.fail("not a valid name")
		}
		if fieldID([]byte(plain)) != 0 {
			key = []byte(plain)
		}
	}
	s.space()
	if s.i >= len(s.b) || s.b[s.i] != ':' {
		return nil, s.fail("a colon is needed")
	}
	s.i++
	s.space()
	return key, nil
}

// value walks over one value.
func (s *scanner) value(depth int) error {
	if s.i >= len(s.b) {
		return s.fail("a value is needed")
	}
	switch c := s.b[s.i]; c {
	case '"':
		_, err := s.str()
		return err
	case '{', '[':
		if depth >= MaxDepth {
			return s.fail(fmt.Sprintf("nests deeper than %d", MaxDepth))
		}
		return s.composite(c, depth)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

func (s *scanner) composite(open byte, depth int) error {
	closing := byte(']')
	if open == '{' {
		closing = '}'
	}
	s.i++
	s.space()
	if s.i < len(s.b) && s.b[s.i] == closing {
		s.i++
		return nil
	}
	for {
		if open == '{' {
			if _, err := s.key(); err != nil {
				return err
			}
		}
		if err := s.value(depth + 1); err != nil {
			return err
		}
		s.space()
		if s.i >= len(s.b) {
			return s.fail("the body ends inside an object or a list")
		}
		c := s.b[s.i]
		s.i++
		if c == closing {
			return nil
		}
		if c != ',' {
			s.i--
			return s.fail("a comma is needed")
		}
		s.space()
	}
}

func (s *scanner) word(w string) error {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return s.fail("not a JSON value")
	}
	s.i += len(w)
	return nil
}

func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}

func (s *scanner) number() error {
	if s.b[s.i] == '-' {
		s.i++
	}
	zero := s.i < len(s.b) && s.b[s.i] == '0'
	from := s.i
	if !s.digits() || zero && s.i-from > 1 {
		return s.fail("not a JSON value")
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if !s.digits() {
			return s.fail("not a JSON number")
		}
	}
	if s.i < len(s.b) && (s.b[s.i] == 'e' || s.b[s.i] == 'E') {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		exp := s.i
		if !s.digits() || s.i-exp > 3 {
			return s.fail("not a JSON number")
		}
	}
	return nil
}

// str walks over a string, the cursor on its opening quote, and reports
// whether it holds escapes.
func (s *scanner) str() (escaped bool, err error) {
	s.i++
	for {
		q := bytes.IndexByte(s.b[s.i:], '"')
		if q < 0 {
			return escaped, s.fail("a string does not end")
		}
		run := s.b[s.i : s.i+q]
		e := bytes.IndexByte(run, '\\')
		if e < 0 {
			if at := control(run); at >= 0 {
				s.i += at
				return escaped, s.fail("a control character stands unescaped in a string")
			}
			s.i += q + 1
			return escaped, nil
		}
		if at := control(run[:e]); at >= 0 {
			s.i += at
			return escaped, s.fail("a control character stands unescaped in a string")
		}
		s.i += e
		escaped = true
		if err := s.escapes(); err != nil {
			return escaped, err
		}
	}
}

// escapes walks over a run of escapes and the plain bytes between them that
// stand near; it stops at a quote or at a long plain run.
func (s *scanner) escapes() error {
	plain := 0
	for s.i < len(s.b) && plain < 64 {
		c := s.b[s.i]
		switch {
		case c == '"':
			return nil
		case c == '\\':
			plain = 0
			if err := s.escape(); err != nil {
				return err
			}
		case c < 0x20:
			return s.fail("a control character stands unescaped in a string")
		default:
			plain++
			s.i++
		}
	}
	return nil
}

func (s *scanner) escape() error {
	if s.i+1 >= len(s.b) {
		return s.fail("a string does not end")
	}
	switch s.b[s.i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.i += 2
		return nil
	case 'u':
		r, ok := s.hex4(s.i + 2)
		if !ok || r >= 0xDC00 && r < 0xE000 {
			return s.fail("not a valid escape")
		}
		if r >= 0xD800 && r < 0xDC00 {
			if s.i+7 >= len(s.b) || s.b[s.i+6] != '\\' || s.b[s.i+7] != 'u' {
				return s.fail("half of a surrogate pair")
			}
			lo, ok := s.hex4(s.i + 8)
			if !ok || lo < 0xDC00 || lo >= 0xE000 {
				return s.fail("half of a surrogate pair")
			}
			s.i += 6
		}
		s.i += 6
		return nil
	}
	return s.fail("not a valid escape")
}

func (s *scanner) hex4(at int) (r rune, ok bool) {
	if at+4 > len(s.b) {
		return 0, false
	}
	for _, c := range s.b[at : at+4] {
		d := unhex[c]
		if d < 0 {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

// control returns where the first byte below 0x20 stands, or -1.
func control(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		v := binary.LittleEndian.Uint64(b[i:])
		if (v-0x2020202020202020)&^v&0x8080808080808080 != 0 {
			break
		}
	}
	for ; i < len(b); i++ {
		if b[i] < 0x20 {
			return i
		}
	}
	return -1
}
