package model

import (
	"encoding/json"
	"fmt"
)

// quant is how a checkpoint's linears were quantised before it was published.
type quant struct {
	method string // mxfp4
}

// quantMethods are those that readQuant knows.
const quantMethods = "mxfp4"

// readQuant reads quantization_config; nil where there is none.
func (s *settings) readQuant() (*quant, error) {
	if isNull(s.Quantization) {
		return nil, nil
	}
	var file struct {
		Method string `json:"quant_method"`
	}
	if err := json.Unmarshal(s.Quantization, &file); err != nil {
		return nil, fmt.Errorf("quantization_config: %w", err)
	}
	switch file.Method {
	case "mxfp4":
		return &quant{method: file.Method}, nil
	}
	return nil, fmt.Errorf("quantization_config: quant_method %.40q is not supported; supported are %s", file.Method, quantMethods)
}
