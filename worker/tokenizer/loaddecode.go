package tokenizer

import (
	"encoding/json"
	"fmt"
)

// decodeFile is any decoder of a file.
type decodeFile struct {
	kind
	Decoders []json.RawMessage `json:"decoders"`
	Prefix   string            `json:"prefix"`
	Cleanup  bool              `json:"cleanup"`
	Suffix   string            `json:"suffix"`
	Content  string            `json:"content"`
	Start    int               `json:"start"`
	Stop     int               `json:"stop"`
	Pattern  patternFile       `json:"pattern"`
	metaspaceFile
}

// loadDecoder reads the part "decoder".
func loadDecoder(raw json.RawMessage) (decoderChain, error) {
	var c decoderChain
	if isNull(raw) {
		c.steps = []decodeStep{decodeSpaces{}}
		return c, nil
	}
	err := c.load(raw, "decoder")
	return c, err
}

func (c *decoderChain) load(raw json.RawMessage, field string) error {
	var f decodeFile
	if err := decodeField(raw, field, &f); err != nil {
		return err
	}
	switch f.Type {
	case "Sequence":
		for i, r := range f.Decoders {
			if err := c.load(r, fmt.Sprintf("%s.decoders[%d]", field, i)); err != nil {
				return err
			}
		}
		return nil
	case "ByteLevel":
		c.steps = append(c.steps, decodeByteLevel{})
	case "Fuse":
		c.fused = true
	case "ByteFallback":
		c.steps = append(c.steps, decodeByteFallback{})
	default:
		step, err := f.step(field, c.fused)
		if err != nil {
			return err
		}
		c.steps = append(c.steps, step)
	}
	return nil
}

// step returns a decoder that works on text. After Fuse the tokens are one.
func (f *decodeFile) step(field string, fused bool) (decodeStep, error) {
	switch f.Type {
	case "Metaspace":
		m, err := f.metaspaceFile.new(field)
		return decodeMetaspace{m.mark, m.scheme != "never"}, err
	case "WordPiece":
		return decodeWordPiece{f.Prefix, f.Cleanup}, nil
	case "BPEDecoder":
		return decodeSuffix{f.Suffix}, nil
	case "Replace":
		s, err := newScanner(f.Pattern, field+".pattern")
		return decodeReplace{replacePattern{s, f.Content}}, err
	case "Strip":
		if f.Content == "" || f.Start < 0 || f.Stop < 0 {
			return nil, fmt.Errorf("tokenizer.json: %s: content is %q, start %d, stop %d; content is one character, the others are not negative", field, f.Content, f.Start, f.Stop)
		}
		return decodeStrip{f.Content, f.Start, f.Stop, fused}, nil
	}
	return nil, unsupported(field, f.Type, "Sequence, ByteLevel, ByteFallback, Metaspace, WordPiece, BPEDecoder, Replace, Strip, Fuse")
}
