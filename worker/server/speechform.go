package server

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
)

// Bounds of a form beside its file.
const (
	mostFields = 64
	mostField  = 64 << 10
)

// speechForm is what a request to write down speech has.
type speechForm struct {
	file     []byte
	fields   map[string]string
	moments  []string // timestamp_granularities
	limit    int64    // bytes of the file
	sampling samplingFields
	failed   *apiError // the first
}

// The formats of answers.
const (
	asJSON    = "json"
	asText    = "text"
	asSRT     = "srt"
	asVTT     = "vtt"
	asVerbose = "verbose_json"
)

// readForm reads a form of one file and some fields.
func readForm(r *http.Request, body, limit int64) (*speechForm, *apiError) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		return nil, badShape("missing", "body.file", "Field required: the body is to be multipart/form-data with a file")
	}
	if r.ContentLength > body {
		return nil, tooLarge(body)
	}
	f := &speechForm{fields: map[string]string{}, limit: limit}
	parts := multipart.NewReader(http.MaxBytesReader(nil, r.Body, body), params["boundary"])
	for n := 0; ; n++ {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && n == mostFields {
			return nil, badValue("", "a form of more than %d fields", mostFields)
		}
		if err != nil {
			return nil, brokenForm(err, body)
		}
		if err := f.take(part, body); err != nil {
			return nil, err
		}
	}
	if f.file == nil {
		return nil, badShape("missing", "body.file", "Field required")
	}
	return f, nil
}

func brokenForm(err error, limit int64) *apiError {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return tooLarge(limit)
	}
	return badShape("form_invalid", "body", "the form is broken or ends before its time")
}

// take reads one part.
func (f *speechForm) take(part *multipart.Part, body int64) *apiError {
	name, most := part.FormName(), int64(mostField)
	if name == "file" {
		most = f.limit
	}
	data, err := io.ReadAll(io.LimitReader(part, most+1))
	switch {
	case err != nil:
		return brokenForm(err, body)
	case int64(len(data)) > most && name == "file":
		e := badValue("audio_filesize_mb", "Maximum file size exceeded: the file is larger than %d bytes; VLLM_MAX_AUDIO_CLIP_FILESIZE_MB allows more", most)
		e.Code = http.StatusRequestEntityTooLarge
		return e
	case int64(len(data)) > most:
		return badValue(printable(name, 64), "%s is larger than %d bytes", printable(name, 64), most)
	case name == "file" && part.FileName() == "":
		return badShape("value_error", "body.file", "Expected UploadFile, received: str")
	case name == "file":
		f.file = append(make([]byte, 0, len(data)), data...)
	case strings.TrimSuffix(name, "[]") == "timestamp_granularities":
		f.moments = append(f.moments, string(data))
	default:
		f.fields[name] = string(data)
	}
	return nil
}

// parsed reads a field into at, where it is there.
func parsed[T any](f *speechForm, name string, parse func(string) (T, error), kind string, at **T) {
	text, there := f.fields[name]
	if !there || text == "" || f.failed != nil {
		return
	}
	v, err := parse(text)
	if err != nil {
		f.failed = badShape(kind+"_parsing", "body."+name, "Input should be a valid "+kind+", unable to parse string")
		return
	}
	*at = &v
}

// yes reads a field that is true or false.
func (f *speechForm) yes(name string) bool {
	switch strings.ToLower(f.fields[name]) {
	case "true", "1", "on", "yes", "t", "y":
		return true
	case "", "false", "0", "off", "no", "f", "n":
	default:
		if f.failed == nil {
			f.failed = badShape("bool_parsing", "body."+name, "Input should be a valid boolean, unable to interpret input")
		}
	}
	return false
}

// check reads the fields of sampling, and refuses what no answer could follow.
func (f *speechForm) check(most int) *apiError {
	s := &f.sampling
	decimal := func(v string) (float64, error) { return strconv.ParseFloat(v, 64) }
	whole := func(v string) (int64, error) { return strconv.ParseInt(v, 10, 64) }
	for name, at := range map[string]**float64{"temperature": &s.Temperature, "top_p": &s.TopP, "min_p": &s.MinP,
		"frequency_penalty": &s.Frequency, "presence_penalty": &s.Presence, "repetition_penalty": &s.Repetition} {
		parsed(f, name, decimal, "number", at)
	}
	parsed(f, "top_k", strconv.Atoi, "integer", &s.TopK)
	parsed(f, "max_completion_tokens", strconv.Atoi, "integer", &s.MaxTokens)
	parsed(f, "seed", whole, "integer", &s.Seed)
	if s.Temperature == nil {
		s.Temperature = new(float64)
	}
	s.Stream = f.yes("stream")
	usage := f.yes("stream_include_usage")
	if all := f.yes("stream_continuous_usage_stats"); usage || all {
		s.StreamOptions = &streamOptions{IncludeUsage: usage, ContinuousUsage: all}
	}
	if f.failed == nil && f.yes("use_beam_search") {
		f.failed = badValue("use_beam_search", "beam search is not supported for speech")
	}
	if f.failed != nil {
		return f.failed
	}
	if x := f.fields["vllm_xargs"]; x != "" && !json.Valid([]byte(x)) {
		return badValue("vllm_xargs", "Failed to parse vllm_xargs. Must be valid JSON.")
	}
	if err := f.checkFormat(); err != nil {
		return err
	}
	return s.check(most)
}

// format is that of the answer.
func (f *speechForm) format() string {
	if v := f.fields["response_format"]; v != "" {
		return v
	}
	return asJSON
}

func (f *speechForm) checkFormat() *apiError {
	format := f.format()
	if err := oneOf(&format, "body.response_format", asJSON, asText, asSRT, asVerbose, asVTT); err != nil {
		return err
	}
	for _, m := range f.moments {
		if err := oneOf(&m, "body.timestamp_granularities", "word", "segment"); err != nil {
			return err
		}
		if m == "word" {
			return badValue("timestamp_granularities", "times of words are not supported; send segment, or leave it out")
		}
		if format != asVerbose {
			return badValue("timestamp_granularities", "timestamp_granularities need response_format verbose_json, got %s", format)
		}
	}
	if f.sampling.Stream && format != asJSON && format != asText {
		return badValue("response_format", "%s cannot be streamed; send json or text", format)
	}
	return nil
}

// times reports whether the text is to have times.
func (f *speechForm) times() bool {
	switch f.format() {
	case asSRT, asVTT, asVerbose:
		return true
	}
	return false
}
