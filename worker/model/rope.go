package model

import (
	"encoding/json"
	"fmt"
	"math"
)

// rope is how a layer turns its queries and keys by position.
type rope struct {
	Freqs       []float64 // Dim/2 angles a position
	Dim         int       // columns of each head that turn
	Scale       float32   // of cosine and sine
	Interleaved bool      // pairs (2i, 2i+1) instead of (i, i + Dim/2)
	Axes        []uint8   // the axis of each pair; nil: there is one position
}

// ropeParameters are the fields of rope_scaling, which transformers 5 calls
// rope_parameters and gives the base and the partial factor too.
type ropeParameters struct {
	Type          string   `json:"rope_type"`
	OldType       string   `json:"type"` // rope_type's name before 4.43
	Theta         float64  `json:"rope_theta"`
	PartialRotary float64  `json:"partial_rotary_factor"`
	Factor        float64  `json:"factor"`
	Original      float64  `json:"original_max_position_embeddings"`
	LowFreq       float64  `json:"low_freq_factor"`
	HighFreq      float64  `json:"high_freq_factor"`
	BetaFast      float64  `json:"beta_fast"`
	BetaSlow      float64  `json:"beta_slow"`
	Attention     *float64 `json:"attention_factor"`
	MScale        float64  `json:"mscale"`
	MScaleAll     float64  `json:"mscale_all_dim"`
	Truncate      *bool    `json:"truncate"`
	Alpha         float64  `json:"alpha"`
	MRoPE         []int    `json:"mrope_section"`

	factors []float64 // of GGUF: what each angle is divided by; nil: nothing
}

// ropeTypes are those that newRope knows.
const ropeTypes = "default, linear, llama3, yarn, dynamic"

// ropeOf reads the parameters that hold for a kind of layer.
func (s *settings) ropeOf(layerType string) (ropeParameters, error) {
	raw, field := s.RopeScaling, "rope_scaling"
	if !isNull(s.RopeParameters) {
		raw, field = s.RopeParameters, "rope_parameters"
	}
	p := ropeParameters{}
	if !isNull(raw) {
		var nested map[string]json.RawMessage
		if err := json.Unmarshal(raw, &nested); err != nil {
			return p, fmt.Errorf("%s: %w", field, err)
		}
		if of, ok := nested[layerType]; ok {
			raw, field = of, field+"."+layerType
		}
		if err := json.Unmarshal(raw, &p); err != nil {
			return p, fmt.Errorf("%s: %w", field, err)
		}
	}
	if err := noZeros(field, raw); err != nil {
		return p, err
	}
	if p.Type == "" {
		p.Type = p.OldType
	}
	if p.Type == "" {
		p.Type = "default"
	}
	if p.Type == "mrope" && s.mrope {
		p.Type = "default" // Qwen2-VL's name for that with sections
	}
	if p.Theta == 0 {
		p.Theta = s.RopeTheta
	}
	if p.PartialRotary == 0 {
		p.PartialRotary = s.PartialRotary
	}
	if p.Original == 0 {
		p.Original = float64(s.MaxPositions)
	}
	if s.gguf != nil {
		p.factors = s.gguf.factors
	}
	if len(p.MRoPE) > 0 && !s.mrope {
		return p, fmt.Errorf("%s: mrope_section is for models that see images, which are not served", field)
	}
	return p, p.check(field)
}

// noZeros refuses fields that are 0, which elsewhere stands for an absent one.
func noZeros(field string, raw json.RawMessage) error {
	var said struct {
		Theta         *float64 `json:"rope_theta"`
		PartialRotary *float64 `json:"partial_rotary_factor"`
	}
	if isNull(raw) {
		return nil
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	if said.Theta != nil && *said.Theta == 0 {
		return fmt.Errorf("%s: rope_theta is 0; want 1 to 1e12, or leave it out", field)
	}
	if said.PartialRotary != nil && *said.PartialRotary == 0 {
		return fmt.Errorf("%s: partial_rotary_factor is 0; want 0.001 to 1, or leave it out", field)
	}
	return nil
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

func (p *ropeParameters) check(field string) error {
	// Factors beyond these are mistakes; the bounds also keep powers finite.
	bound := func(name string, v, low, high float64) error {
		if !(v >= low && v <= high) {
			return fmt.Errorf("%s: %s is %g; want %g to %g", field, name, v, low, high)
		}
		return nil
	}
	checks := []error{
		bound("rope_theta", p.Theta, 1, 1e12),
		bound("partial_rotary_factor", p.PartialRotary, 1e-3, 1),
	}
	switch p.Type {
	case "default":
	case "linear":
		checks = append(checks, bound("factor", p.Factor, 1, 1e6))
	case "dynamic":
		if p.Alpha == 0 {
			checks = append(checks, bound("factor", p.Factor, 1, 1e6), bound("original_max_position_embeddings", p.Original, 1, 1e9))
		} else {
			checks = append(checks, bound("alpha", p.Alpha, 1, 1e9))
		}
	case "llama3":
		checks = append(checks, bound("factor", p.Factor, 1, 1e6), bound("low_freq_factor", p.LowFreq, 1e-6, 1e6),
			bound("high_freq_factor", p.HighFreq, 1e-6, 1e6), bound("high_freq_factor - low_freq_factor", p.HighFreq-p.LowFreq, 1e-6, 1e6),
			bound("original_max_position_embeddings", p.Original, 1, 1e9))
	case "yarn":
		checks = append(checks, bound("factor", p.Factor, 1, 1e6), bound("original_max_position_embeddings", p.Original, 1, 1e9),
			bound("beta_fast", p.BetaFast, 0, 1e6), bound("beta_slow", p.BetaSlow, 0, 1e6), bound("rope_theta", p.Theta, 1.001, 1e12))
	default:
		return fmt.Errorf("%s: rope_type %q is not known; known are %s", field, p.Type, ropeTypes)
	}
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	return nil
}

// fits reports whether heads of headDim columns can turn.
func (p *ropeParameters) fits(headDim int) error {
	dim := int(float64(headDim) * p.PartialRotary)
	if dim < 2 || dim%2 != 0 || p.Type == "dynamic" && dim < 3 {
		return fmt.Errorf("%d of %d columns of a head cannot turn in pairs; see head_dim and partial_rotary_factor", dim, headDim)
	}
	return nil
}

// newRope computes the angles for heads of headDim columns.
func newRope(p ropeParameters, headDim int) *rope {
	dim := int(float64(headDim) * p.PartialRotary)
	theta := p.Theta
	if p.Type == "dynamic" {
		// Without alpha, transformers takes a base that grows with the sequence,
		// so that keys already in the cache are turned by another. As in vLLM, the
		// base is that of the longest sequence.
		alpha := p.Alpha
		if alpha == 0 {
			alpha = p.Factor*p.Factor - (p.Factor - 1)
		}
		theta *= math.Pow(alpha, float64(dim)/float64(dim-2))
	}
	r := &rope{Dim: dim, Scale: 1, Freqs: make([]float64, dim/2)}
	for i := range r.Freqs {
		r.Freqs[i] = 1 / math.Pow(theta, float64(2*i)/float64(dim))
	}
	switch p.Type {
	case "linear":
		for i := range r.Freqs {
			r.Freqs[i] /= p.Factor
		}
	case "llama3":
		p.llama3(r.Freqs)
	case "yarn":
		p.yarn(r)
	}
	for i, f := range p.factors {
		r.Freqs[i] /= f
	}
	// Models were trained with frequencies in float32.
	for i, f := range r.Freqs {
		r.Freqs[i] = float64(float32(f))
	}
	return r
}

// llama3 divides the frequencies whose wave is longer than the original
// context by the factor, leaves the short ones, and blends between.
func (p *ropeParameters) llama3(freqs []float64) {
	for i, f := range freqs {
		turns := p.Original * f / (2 * math.Pi) // within the original context
		switch {
		case turns > p.HighFreq:
		case turns < p.LowFreq:
			freqs[i] = f / p.Factor
		default:
			smooth := (turns - p.LowFreq) / (p.HighFreq - p.LowFreq)
			freqs[i] = (1-smooth)*f/p.Factor + smooth*f
		}
	}
}

// yarn divides slow frequencies by the factor, leaves fast ones, and ramps
// between the columns that turn BetaFast and BetaSlow times within the
// original context. Attention is sharpened by the logarithm of the factor.
func (p *ropeParameters) yarn(r *rope) {
	fast, slow := p.BetaFast, p.BetaSlow
	if fast == 0 {
		fast = 32
	}
	if slow == 0 {
		slow = 1
	}
	column := func(turns float64) float64 {
		return float64(r.Dim) * math.Log(p.Original/(turns*2*math.Pi)) / (2 * math.Log(p.Theta))
	}
	low, high := column(fast), column(slow)
	if p.Truncate == nil || *p.Truncate {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, float64(r.Dim-1))
	if low == high {
		high += 0.001
	}
	for i, f := range r.Freqs {
		ramp := min(max((float64(i)-low)/(high-low), 0), 1)
		r.Freqs[i] = f/p.Factor*ramp + f*(1-ramp)
	}
	sharpen := func(m float64) float64 {
		if p.Factor <= 1 {
			return 1
		}
		return 0.1*m*math.Log(p.Factor) + 1
	}
	switch {
	case p.Attention != nil:
		r.Scale = float32(*p.Attention)
	case p.MScale != 0 && p.MScaleAll != 0:
		r.Scale = float32(sharpen(p.MScale) / sharpen(p.MScaleAll))
	default:
		r.Scale = float32(sharpen(1))
	}
}
