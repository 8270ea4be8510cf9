package xpu

import (
	"fmt"

	"roundhouse/kernels"
	"roundhouse/kernels/xpu/cl"
)

// kv is the pages of one layer group.
type kv struct {
	spec   kernels.KVSpec
	keys   *cl.Buffer // nil for recurrent state
	values *cl.Buffer // nil for MLA and recurrent state
	state  *cl.Buffer
	uses   []kvUse
}

// kvUse is an argument of a launch that follows the pages.
type kvUse struct {
	launch *launch
	index  int
	arg    arg
}

// pages is an argument that is one of the buffers of pages.
type pages struct {
	c      *kv
	buffer **cl.Buffer
}

// firstBlock is an argument that is the number of a layer's first block.
type firstBlock struct {
	c     *kv
	layer int
}

// kvOf is the pages that an argument follows; nil: none.
func kvOf(a arg) *kv {
	switch v := a.(type) {
	case pages:
		return v.c
	case firstBlock:
		return v.c
	}
	return nil
}

// Spec implements kernels.KV.
func (c *kv) Spec() kernels.KVSpec { return c.spec }

// Bytes implements kernels.KV.
func (c *kv) Bytes() int64 { return int64(c.spec.Blocks) * c.spec.PageBytes() }

// pageType is the kernels' number for a type of page; -1 where they have none.
func pageType(t kernels.DType) int32 {
	switch t {
	case kernels.F32:
		return 0
	case kernels.F16:
		return 1
	case kernels.BF16:
		return 2
	case kernels.F8E4M3:
		return 3
	case kernels.Int8:
		return 5
	}
	return -1
}

// headBytes is one head's keys or values of a page. Those of int8 have a scale for each
// token behind them.
func headBytes(spec kernels.KVSpec, dim int) int64 {
	n := int64(spec.BlockTokens) * int64(dim) * int64(spec.Type.Size())
	if spec.Type == kernels.Int8 {
		n = (n+3)&^3 + 4*int64(spec.BlockTokens)
	}
	return n
}

// KV implements kernels.Backend.
func (b *Backend) KV(spec kernels.KVSpec) (kernels.KV, error) {
	if spec.StateBytes == 0 && pageType(spec.Type) < 0 {
		return nil, fmt.Errorf("pages of %v: %w; there are float32, float16, bfloat16, fp8_e4m3 and int8", spec.Type, errUnsupported)
	}
	c := &kv{spec: spec}
	return c, b.fill(c)
}

// fill takes the memory of pages.
func (b *Backend) fill(c *kv) (err error) {
	spec := c.spec
	if spec.StateBytes > 0 {
		if c.state, err = b.buffer(c.Bytes()); err != nil {
			return err
		}
		return c.state.Zero()
	}
	heads := int64(spec.Layers) * int64(spec.Blocks) * int64(spec.Heads)
	if c.keys, err = b.buffer(heads * headBytes(spec, spec.KeyDim)); err != nil {
		return fmt.Errorf("keys of %d blocks: %w", spec.Blocks, err)
	}
	if spec.ValueDim > 0 {
		if c.values, err = b.buffer(heads * headBytes(spec, spec.ValueDim)); err != nil {
			return fmt.Errorf("values of %d blocks: %w", spec.Blocks, err)
		}
	}
	return nil
}

// Grow implements kernels.Growing.
func (b *Backend) Grow(to kernels.KV, blocks int) error {
	c := to.(*kv)
	for _, buf := range []**cl.Buffer{&c.keys, &c.values, &c.state} {
		if *buf != nil {
			b.release(*buf)
			*buf = nil
		}
	}
	c.spec.Blocks = blocks
	if err := b.fill(c); err != nil {
		return err
	}
	for _, u := range c.uses {
		if err := u.launch.set(u.index, u.arg, b.dummy); err != nil {
			return err
		}
	}
	return nil
}
