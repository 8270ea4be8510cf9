package server

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"roundhouse/worker"
	"roundhouse/worker/parser"
)

// FormKind says how a Form restricts an answer.
type FormKind uint8

// The kinds of forms.
const (
	FormNone    FormKind = iota
	FormSchema           // JSON that fits Schema
	FormObject           // any JSON object
	FormRegex            // Text is a regular expression
	FormChoice           // one of Choices
	FormGrammar          // Text is an EBNF or Lark grammar
	FormTag              // Text is a structural tag, as JSON, given in the field From
	FormCalls            // a list of calls of some of Calls; of one with OneCall
)

// Form is what an answer is restricted to.
type Form struct {
	Kind    FormKind
	Schema  json.RawMessage
	Text    string
	From    string
	Choices []string
	Calls   []parser.Tool
	OneCall bool
	Compact bool // no white space in JSON but one space after a comma or colon
}

// Compiled is a form ready for use.
type Compiled interface {
	// Guide makes the guide of one choice.
	Guide() worker.Guide
	// MinTokens is the least number of tokens that the form can be filled with.
	MinTokens() int
}

// Bounds of a form.
const (
	maxFormBytes = 256 << 10
	maxForms     = 1024
)

// form reads what a request says of its answer's form: response_format, or
// structured_outputs.
func (f *samplingFields) form() (Form, *apiError) {
	var format struct {
		Type   string `json:"type"`
		Schema *struct {
			Name   *string         `json:"name"`
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
		Format     json.RawMessage `json:"format"`
		Structures json.RawMessage `json:"structures"`
	}
	if f.ResponseFormat != nil && json.Unmarshal(f.ResponseFormat, &format) != nil {
		return Form{}, badShape("dict_type", "body.response_format", "Input should be a valid dictionary")
	}
	out, err := f.structured()
	if err != nil || out.Kind != FormNone {
		if err == nil && format.Type != "" && format.Type != "text" {
			err = badValue("", "You can only use one kind of constraints for structured outputs: response_format or structured_outputs.")
		}
		return out, err
	}
	switch format.Type {
	case "text":
		return Form{}, nil
	case "":
		if f.ResponseFormat != nil {
			return Form{}, badShape("missing", "body.response_format.type", "Field required")
		}
		return Form{}, nil
	case "json_object":
		return Form{Kind: FormObject}, nil
	case "json_schema":
		switch {
		case format.Schema == nil:
			return Form{}, badValue("response_format", "When response_format type is 'json_schema', the 'json_schema' field must be provided.")
		case format.Schema.Schema == nil && format.Schema.Name == nil:
			return Form{}, badShape("missing", "body.response_format.json_schema.name", "Field required")
		case format.Schema.Schema == nil:
			return Form{}, badValue("", "response_format of type json_schema needs json_schema.schema")
		case !slices.Contains([]string{"{", "t"}, string(format.Schema.Schema[:1])):
			return Form{}, badShape("dict_type", "body.response_format.json_schema.schema", "Input should be a valid dictionary")
		}
		return Form{Kind: FormSchema, Schema: format.Schema.Schema}, nil
	case "structural_tag":
		if format.Format == nil && format.Structures == nil {
			return Form{}, badValue("response_format", "Invalid response_format structural_tag specification: it has neither format nor structures")
		}
		return Form{Kind: FormTag, Text: string(f.ResponseFormat), From: "response_format"}, nil
	}
	return Form{}, badShape("literal_error", "body.response_format.type", "Input should be 'text', 'json_object', 'json_schema' or 'structural_tag', not "+printable(format.Type, 32))
}

// structured reads structured_outputs, or the names that it had before.
func (f *samplingFields) structured() (Form, *apiError) {
	s := structuredOutputs{
		JSON: f.GuidedJSON, Regex: f.GuidedRegex, Choice: f.GuidedChoice, Grammar: f.GuidedGrammar,
	}
	if f.StructuredOutputs != nil {
		if err := read(f.StructuredOutputs, reflect.ValueOf(&s).Elem(), "body.structured_outputs"); err != nil {
			return Form{}, err
		}
	}
	var forms []Form
	if s.StructuralTag != nil {
		text, ok := decoded[string](s.StructuralTag)
		if !ok || strings.TrimSpace(text) == "" {
			return Form{}, badValue("structured_outputs", "Invalid structured_outputs structural_tag specification: it is no string with JSON")
		}
		forms = append(forms, Form{Kind: FormTag, Text: text, From: "structured_outputs"})
	}
	if s.JSON != nil {
		schema := s.JSON
		if text, ok := decoded[string](s.JSON); ok {
			schema = json.RawMessage(text) // as some clients send it
		}
		forms = append(forms, Form{Kind: FormSchema, Schema: schema})
	}
	if s.Regex != nil {
		forms = append(forms, Form{Kind: FormRegex, Text: *s.Regex})
	}
	if s.Choice != nil {
		forms = append(forms, Form{Kind: FormChoice, Choices: s.Choice})
	}
	if s.Grammar != nil {
		if strings.TrimSpace(*s.Grammar) == "" {
			return Form{}, badValue("", "structured_outputs.grammar cannot be an empty string")
		}
		forms = append(forms, Form{Kind: FormGrammar, Text: *s.Grammar})
	}
	if s.JSONObject {
		forms = append(forms, Form{Kind: FormObject})
	}
	switch len(forms) {
	case 0:
		if f.StructuredOutputs != nil {
			return Form{}, badValue("", "You must use one kind of structured outputs constraint ('json', 'regex', 'choice', 'grammar', 'json_object' or 'structural_tag') but none are specified.")
		}
		return Form{}, nil
	case 1:
		forms[0].Compact = s.Compact
		return forms[0], forms[0].check()
	}
	return Form{}, badValue("", "You can only use one kind of constraints for structured outputs ('json', 'regex', 'choice', 'grammar', 'json_object' or 'structural_tag').")
}

type structuredOutputs struct {
	JSON          json.RawMessage `json:"json"`
	Regex         *string         `json:"regex"`
	Choice        []string        `json:"choice"`
	Grammar       *string         `json:"grammar"`
	JSONObject    bool            `json:"json_object"`
	StructuralTag json.RawMessage `json:"structural_tag"`
	Compact       bool            `json:"disable_any_whitespace"`
}

func (f *Form) check() *apiError {
	total := len(f.Schema) + len(f.Text)
	for _, c := range f.Choices {
		total += len(c)
	}
	for _, c := range f.Calls {
		total += len(c.Name) + len(c.Parameters)
	}
	if total > maxFormBytes || len(f.Choices) > maxForms {
		return badValue("structured_outputs", "the constraint is larger than %d bytes or %d choices", maxFormBytes, maxForms)
	}
	if f.Kind == FormChoice && len(f.Choices) == 0 {
		return badValue("", "choice cannot be empty")
	}
	return nil
}

// restrict compiles a form for all choices of the job's requests. Where the
// model thinks first, the form holds from the end of the thoughts on.
func (j *job) restrict(form Form, t thinking) *apiError {
	if err := j.s.checkBudget(t.budget); err != nil {
		return err
	}
	if form.Kind != FormNone && j.fields.UseBeamSearch {
		return badValue("use_beam_search", "A beam search holds no answer to a form; leave out `use_beam_search`, or the form (response_format, structured_outputs, a required tool).")
	}
	if form.Kind == FormNone {
		if t.allowed && value(t.budget, -1) >= 0 {
			j.eachChoice(func(r *worker.Request) { r.Guides = append(r.Guides, j.s.afterThought(nil, 0, t)) })
		}
		return nil
	}
	if j.s.cfg.Compile == nil {
		return badValue("structured_outputs", "structured outputs are not supported by this engine.")
	}
	if err := form.check(); err != nil {
		return err
	}
	compiled, err := j.s.cfg.Compile(form)
	switch {
	case err != nil && form.Kind == FormTag:
		return badValue(form.From, "Invalid %s structural_tag specification: %v", form.From, err)
	case err != nil:
		return badValue("", "Invalid structured output specification: %v", err)
	}
	least := compiled.MinTokens()
	j.eachChoice(func(r *worker.Request) {
		g := compiled.Guide()
		room := least
		if r.Params.MaxTokens < least {
			g, room = unhurried{g}, 0
		}
		if t.allowed {
			g = j.s.afterThought(g, room, t)
		}
		r.Guides = append(r.Guides, g)
	})
	return nil
}

// eachChoice calls f for every choice of every prompt.
func (j *job) eachChoice(f func(*worker.Request)) {
	for i := range j.reqs {
		for range j.reqs[i].Params.N {
			f(&j.reqs[i])
		}
	}
}
