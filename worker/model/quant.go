package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"roundhouse/kernels"
)

// quant is how a checkpoint's linears were quantised before it was published.
type quant struct {
	method string // as quant_method has it
	group  int    // columns that share a scale, of four-bit codes
	block  [2]int // rows and columns that share a scale, of fp8; 0: by row or by tensor
}

// quantMethods are those that readQuant knows.
var quantMethods = [...]string{"gptq", "awq", "fp8", "compressed-tensors", "mxfp4"}

// linearQuants are the methods that every decoder reads whose linears have
// tensors of their own.
func linearQuants() []string { return []string{"gptq", "awq", "fp8", "compressed-tensors"} }

// quantFile is quantization_config.
type quantFile struct {
	Method string `json:"quant_method"`

	// GPTQ and AWQ.
	Bits       int    `json:"bits"`
	Group      int    `json:"group_size"`
	Checkpoint string `json:"checkpoint_format"`
	Version    string `json:"version"`

	// fp8.
	Fmt   string `json:"fmt"`
	Block []int  `json:"weight_block_size"`

	// compressed-tensors.
	Format string `json:"format"`
	Groups map[string]struct {
		Weights struct {
			Bits      int    `json:"num_bits"`
			Type      string `json:"type"`
			Strategy  string `json:"strategy"`
			Group     int    `json:"group_size"`
			Symmetric *bool  `json:"symmetric"`
			Block     []int  `json:"block_structure"`
		} `json:"weights"`
	} `json:"config_groups"`
}

// fits reports whether the linears can be kept in a format. GPTQ, AWQ and MXFP4
// are formats of checkpoints, not of what is made while loading; and codes of
// four bits are not turned into other codes.
func (q *quant) fits(format kernels.Format) error {
	have := "none"
	if q != nil {
		have = q.method
	}
	ok := true
	switch format {
	case kernels.FormatGPTQ, kernels.FormatAWQ, kernels.FormatMXFP4:
		ok = have == format.String()
	case kernels.FormatInt8, kernels.FormatInt4, kernels.FormatFP8:
		ok = have == "none" || have == "fp8" || have == "mxfp4"
	}
	if !ok {
		return inVLLMsWords("Quantization method specified in the model config (%s) does not match the quantization method specified in the `quantization` argument (%v); leave the argument out", have, format)
	}
	return nil
}

// readQuant reads quantization_config; nil where there is none.
func (s *settings) readQuant(arch architecture) (*quant, error) {
	if isNull(s.Quantization) {
		return nil, nil
	}
	var f quantFile
	err := json.Unmarshal(s.Quantization, &f)
	switch {
	case err != nil:
	case !slices.Contains(quantMethods[:], f.Method):
		err = fmt.Errorf("quant_method %.40q is not supported; supported are %s", f.Method, strings.Join(quantMethods[:], ", "))
	case !slices.Contains(arch.quants, f.Method):
		err = fmt.Errorf("quant_method %q is not supported for %s", f.Method, arch.name)
	}
	if err != nil {
		return nil, fmt.Errorf("quantization_config: %w", err)
	}
	q := &quant{method: f.Method}
	if err := q.read(f); err != nil {
		return nil, fmt.Errorf("quantization_config: %s: %w", f.Method, err)
	}
	return q, nil
}

func (q *quant) read(f quantFile) error {
	switch f.Method {
	case "gptq":
		if f.Checkpoint != "" && f.Checkpoint != "gptq" {
			return fmt.Errorf("checkpoint_format %.40q is not supported; supported is gptq", f.Checkpoint)
		}
		return q.four(f.Bits, f.Group)
	case "awq":
		if f.Version != "" && !strings.EqualFold(f.Version, "gemm") {
			return fmt.Errorf("version %.40q is not supported; supported is gemm", f.Version)
		}
		return q.four(f.Bits, f.Group)
	case "fp8":
		if f.Fmt != "" && f.Fmt != "e4m3" {
			return fmt.Errorf("fmt %.40q is not supported; supported is e4m3", f.Fmt)
		}
		return q.eight(f.Block)
	case "compressed-tensors":
		return q.compressed(f)
	}
	return nil
}

func (q *quant) four(bits, group int) error {
	if bits != 4 {
		return fmt.Errorf("%d bits are not supported; supported are 4", bits)
	}
	if group != 32 && group != 64 && (group < 1 || group%int4Group != 0 || group > 1<<20) {
		return fmt.Errorf("group_size %d is not supported; supported are 32, 64 and multiples of %d", group, int4Group)
	}
	q.group = group
	return nil
}

// eight reads the block size of fp8; none means a scale for each tensor or row.
func (q *quant) eight(block []int) error {
	if len(block) == 0 {
		return nil
	}
	if len(block) != 2 || block[0] < 1 || block[0] > 1<<20 || block[1] < 1 || block[1]%int4Group != 0 || block[1] > 1<<20 {
		return fmt.Errorf("blocks of %v are not supported; supported are [rows, columns] with columns a multiple of %d", block, int4Group)
	}
	q.block = [2]int{block[0], block[1]}
	return nil
}

// compressed reads the one scheme of a compressed-tensors checkpoint.
func (q *quant) compressed(f quantFile) error {
	if len(f.Groups) != 1 {
		return fmt.Errorf("%d config_groups; supported is one", len(f.Groups))
	}
	for _, g := range f.Groups {
		w := g.Weights
		if w.Symmetric != nil && !*w.Symmetric {
			return fmt.Errorf("weights with zero points are not supported")
		}
		switch {
		case (f.Format == "float-quantized" || f.Format == "naive-quantized") && w.Bits == 8 && w.Type == "float":
			q.method = "fp8"
			return q.eight(w.Block)
		case f.Format == "pack-quantized" && w.Bits == 4 && w.Type == "int" && w.Strategy == "group":
			q.method = "packed"
			return q.four(w.Bits, w.Group)
		}
		return fmt.Errorf("format %.40q with %d bits of %.20q by %.20q is not supported; supported are float-quantized fp8 and pack-quantized int4 by group", f.Format, w.Bits, w.Type, w.Strategy)
	}
	return nil
}
