package tokenizer

import (
	"encoding/json"
	"fmt"
)

// postProcessor puts tokens around one text or a pair of texts.
type postProcessor struct {
	one, two []templatePart
}

// templatePart is a part of a post-processor's template.
type templatePart struct {
	sequence int // 0: the first text, 1: the second, -1: tokens
	tokens   []int32
	kind     int32 // type id
}

// single returns ids with what the template puts around one text.
func (p *postProcessor) single(ids []int32) []int32 {
	out, _ := fill(p.one, ids, nil)
	return out
}

// pair returns the tokens of two texts and their types. Without a
// post-processor the second follows the first.
func (p *postProcessor) pair(a, b []int32) (ids, types []int32) {
	parts := []templatePart{{sequence: 0}, {sequence: 1, kind: 1}}
	if p != nil {
		parts = p.two
	}
	return fill(parts, a, b)
}

func fill(parts []templatePart, a, b []int32) (ids, types []int32) {
	for _, part := range parts {
		tokens := part.tokens
		switch part.sequence {
		case 0:
			tokens = a
		case 1:
			tokens = b
		}
		ids = append(ids, tokens...)
		for range tokens {
			types = append(types, part.kind)
		}
	}
	return ids, types
}

// postFile is any post-processor of a file.
type postFile struct {
	kind
	Processors []json.RawMessage `json:"processors"`
	Single     []templateFile    `json:"single"`
	Pair       []templateFile    `json:"pair"`
	Special    map[string]struct {
		IDs []int32 `json:"ids"`
	} `json:"special_tokens"`
	Sep markerFile `json:"sep"`
	Cls markerFile `json:"cls"`
}

// templateFile is a part of TemplateProcessing.
type templateFile struct {
	Special *struct {
		ID   string `json:"id"`
		Type int32  `json:"type_id"`
	} `json:"SpecialToken"`
	Sequence *struct {
		ID   string `json:"id"`
		Type int32  `json:"type_id"`
	} `json:"Sequence"`
}

// markerFile is a token as ["[SEP]", 102].
type markerFile struct{ id int32 }

func (m *markerFile) UnmarshalJSON(data []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	if len(parts) != 2 {
		return fmt.Errorf("a token is [text, id]; found %d entries", len(parts))
	}
	return json.Unmarshal(parts[1], &m.id)
}

// loadPostProcessor reads the part "post_processor". It returns nil where
// nothing is put around a text.
func loadPostProcessor(raw json.RawMessage, size int) (*postProcessor, error) {
	if isNull(raw) {
		return nil, nil
	}
	p, err := onePostProcessor(raw, "post_processor")
	if p == nil || err != nil {
		return nil, err
	}
	for _, part := range append(append([]templatePart(nil), p.one...), p.two...) {
		for _, id := range part.tokens {
			if id < 0 || int(id) >= size {
				return nil, fmt.Errorf("tokenizer.json: post_processor: token id %d is not one of the %d ids", id, size)
			}
		}
	}
	return p, nil
}

func onePostProcessor(raw json.RawMessage, field string) (*postProcessor, error) {
	var f postFile
	if err := decodeField(raw, field, &f); err != nil {
		return nil, err
	}
	token := func(m markerFile, kind int32) templatePart { return templatePart{-1, []int32{m.id}, kind} }
	switch f.Type {
	case "ByteLevel": // changes offsets only
		return nil, nil
	case "Sequence":
		return chainProcessors(f.Processors, field)
	case "BertProcessing":
		one := []templatePart{token(f.Cls, 0), {sequence: 0}, token(f.Sep, 0)}
		return &postProcessor{one, append(one[:3:3], templatePart{sequence: 1, kind: 1}, token(f.Sep, 1))}, nil
	case "RobertaProcessing":
		one := []templatePart{token(f.Cls, 0), {sequence: 0}, token(f.Sep, 0)}
		return &postProcessor{one, append(one[:3:3], token(f.Sep, 0), templatePart{sequence: 1}, token(f.Sep, 0))}, nil
	case "TemplateProcessing":
		one, err := f.template(f.Single, field+".single")
		if err != nil {
			return nil, err
		}
		two, err := f.template(f.Pair, field+".pair")
		return &postProcessor{one, two}, err
	}
	return nil, unsupported(field, f.Type, "Sequence, TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel")
}

// chainProcessors joins a sequence. At most one of them may put tokens: no
// file in use has two.
func chainProcessors(list []json.RawMessage, field string) (*postProcessor, error) {
	var found *postProcessor
	for i, raw := range list {
		p, err := onePostProcessor(raw, fmt.Sprintf("%s.processors[%d]", field, i))
		if err != nil {
			return nil, err
		}
		if p == nil {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("tokenizer.json: %s.processors: two of them add tokens; one may", field)
		}
		found = p
	}
	return found, nil
}

// template resolves the parts of TemplateProcessing.
func (f *postFile) template(parts []templateFile, field string) ([]templatePart, error) {
	var out []templatePart
	for i, p := range parts {
		switch {
		case p.Special != nil:
			s, ok := f.Special[p.Special.ID]
			if !ok {
				return nil, fmt.Errorf("tokenizer.json: %s[%d]: token %q is not in special_tokens", field, i, clip(p.Special.ID))
			}
			out = append(out, templatePart{-1, s.IDs, p.Special.Type})
		case p.Sequence != nil && p.Sequence.ID == "A":
			out = append(out, templatePart{sequence: 0, kind: p.Sequence.Type})
		case p.Sequence != nil && p.Sequence.ID == "B":
			out = append(out, templatePart{sequence: 1, kind: p.Sequence.Type})
		default:
			return nil, fmt.Errorf("tokenizer.json: %s[%d]: neither a token nor the sequence A or B", field, i)
		}
	}
	return out, nil
}
