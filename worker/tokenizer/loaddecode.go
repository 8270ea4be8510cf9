package tokenizer

import (
	"encoding/json"
	"fmt"
)

// decodeFile is any decoder of a file.
type decodeFile struct {
	kind
	Decoders []json.RawMessage `json:"decoders"`
}

// loadDecoder reads the part "decoder".
func loadDecoder(raw json.RawMessage) (decoderChain, error) {
	var c decoderChain
	if isNull(raw) {
		return c, fmt.Errorf("tokenizer.json: decoder is missing")
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
	case "ByteFallback":
		c.steps = append(c.steps, decodeByteFallback{})
	default:
		return unsupported(field, f.Type, "Sequence, ByteLevel, ByteFallback")
	}
	return nil
}
