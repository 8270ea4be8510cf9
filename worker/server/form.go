package server

import (
	"encoding/json"

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
	FormGrammar          // Text is an EBNF grammar
	FormCalls            // a list of calls of some of Calls; of one with OneCall
)

// Form is what an answer is restricted to.
type Form struct {
	Kind    FormKind
	Schema  json.RawMessage
	Text    string
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
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	if f.ResponseFormat != nil && json.Unmarshal(f.ResponseFormat, &format) != nil {
		return Form{}, badShape("dict_type", "response_format", "Input should be a valid dictionary")
	}
	out, err := f.structured()
	if err != nil || out.Kind != FormNone {
		if err == nil && format.Type != "" && format.Type != "text" {
			err = badValue("structured_outputs", "You can only use one kind of constraints for structured outputs: response_format or structured_outputs.")
		}
		return out, err
	}
	switch format.Type {
	case "", "text":
		return Form{}, nil
	case "json_object":
		return Form{Kind: FormObject}, nil
	case "json_schema":
		if format.Schema == nil || format.Schema.Schema == nil {
			return Form{}, badValue("response_format", "response_format of type json_schema needs json_schema.schema")
		}
		return Form{Kind: FormSchema, Schema: format.Schema.Schema}, nil
	}
	return Form{}, badValue("response_format", "response_format of type %.32q is not supported; want text, json_object or json_schema", format.Type)
}

// structured reads structured_outputs, or the names that it had before.
func (f *samplingFields) structured() (Form, *apiError) {
	s := structuredOutputs{
		JSON: f.GuidedJSON, Regex: f.GuidedRegex, Choice: f.GuidedChoice, Grammar: f.GuidedGrammar,
	}
	if f.StructuredOutputs != nil && json.Unmarshal(f.StructuredOutputs, &s) != nil {
		return Form{}, badShape("dict_type", "structured_outputs", "Input should be a valid dictionary")
	}
	if s.StructuralTag != nil {
		return Form{}, notImplemented("`structural_tag` is not supported by this engine.")
	}
	var forms []Form
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
		forms = append(forms, Form{Kind: FormGrammar, Text: *s.Grammar})
	}
	if s.JSONObject {
		forms = append(forms, Form{Kind: FormObject})
	}
	switch len(forms) {
	case 0:
		return Form{}, nil
	case 1:
		forms[0].Compact = s.Compact
		return forms[0], forms[0].check()
	}
	return Form{}, badValue("structured_outputs", "You can only use one kind of constraints for structured outputs ('json', 'regex', 'choice', 'grammar' or 'json_object').")
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
		return badValue("structured_outputs", "choice cannot be empty")
	}
	return nil
}

// restrict compiles a form for all choices of the job's requests. Where the
// model reasons first, the form holds from the reasoning's end on; inside says
// that the prompt has begun it.
func (j *job) restrict(form Form, reasons, inside bool) *apiError {
	if form.Kind == FormNone {
		return nil
	}
	if j.s.cfg.Compile == nil {
		return notImplemented("structured outputs are not supported by this engine.")
	}
	if err := form.check(); err != nil {
		return err
	}
	compiled, err := j.s.cfg.Compile(form)
	if err != nil {
		return badValue("structured_outputs", "Invalid structured output specification: %v", err)
	}
	for i := range j.reqs {
		r := &j.reqs[i]
		if least := compiled.MinTokens(); r.Params.MaxTokens < least {
			return badValue("max_tokens", "the answer's form needs at least %d tokens, and max_tokens allows %d", least, r.Params.MaxTokens)
		}
		for range r.Params.N {
			g := compiled.Guide()
			if reasons {
				g = j.s.afterThought(g, compiled.MinTokens(), inside)
			}
			r.Guides = append(r.Guides, g)
		}
	}
	return nil
}
