package launch

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Overrides are --override-generation-config: defaults of sampling that stand
// above the model's own.
type Overrides struct {
	Temperature *float64 `json:"temperature"`
	TopP        *float64 `json:"top_p"`
	TopK        *int     `json:"top_k"`
	MinP        *float64 `json:"min_p"`
	Repetition  *float64 `json:"repetition_penalty"`
}

func overrides(o *Options, v string) error {
	d := json.NewDecoder(bytes.NewReader([]byte(v)))
	d.DisallowUnknownFields()
	if err := d.Decode(&o.Sampling); err != nil {
		return fmt.Errorf("%w; want JSON with temperature, top_p, top_k, min_p or repetition_penalty", err)
	}
	return nil
}

// withoutWindow holds contexts to the model's sliding window, within which it
// makes no difference.
func withoutWindow(o *Options, windows []int) error {
	if !o.NoWindow {
		return nil
	}
	for _, w := range windows {
		switch {
		case w == 0:
		case o.MaxModelLen > w:
			return fmt.Errorf("--disable-sliding-window: contexts of %d tokens are longer than the window of %d; leave one of the two flags out", o.MaxModelLen, w)
		case o.MaxModelLen < 1:
			o.MaxModelLen = w
		}
	}
	return nil
}
