//go:build pocl || intel

package xpu

import (
	_ "embed"
	"strings"

	"roundhouse/kernels/xpu/cl"
)

// dpas is the matrix unit over sub-groups.
//
//go:embed testdata/dpas.cl
var dpas string

// NewEmulated begins to use a device that has sub-groups and no matrix unit as if it were
// a target: with the kernels that the target runs, from SPIR-V where this build has it,
// and the unit's instruction alone made of others. It is for tests.
func NewEmulated(o Options, target GPU) (*Backend, error) {
	o.Tuning, o.Cache = target.Tuning, ""
	b, err := New(o)
	if err != nil {
		return nil, err
	}
	b.built.compile = func(m Module, il []byte) (*cl.Program, string, error) {
		p, err := b.ctx.Linked(il, m.Text, known(m.Options), dpas)
		if il != nil {
			return p, "SPIR-V", err
		}
		return p, "source", err
	}
	return b, nil
}

// known leaves out the options that are of Intel's GPUs alone.
func known(options string) string {
	var kept []string
	for _, o := range strings.Fields(options) {
		if !strings.HasPrefix(o, "-cl-intel-") {
			kept = append(kept, o)
		}
	}
	return strings.Join(kept, " ")
}
