package cpu

import (
	"unsafe"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
)

// scratch is what one thread needs for itself.
type scratch struct {
	tile   tile
	tail   [16 * 64]float32    // results of a tile that has fewer than 16 outputs
	block  [4 * 4 * 16]float32 // results of a group of columns
	scores []float32           // (query heads of a group, split)
	lanes  []float32           // (query heads of a group, 16)
	most   []float32           // greatest score so far, by query head of a group
	total  []float32           // sum of exponents so far
	part   []float32           // a split's weighted values
	wide   []float32           // fp8 pages as float32
	picks  []kernels.Candidate
	before []float32 // logits that a sampling has edited
	counts []int32   // candidates by step of logit
	masses []float64 // and their chances
	edge   []kernels.Candidate
	_      [64]byte
}

// setAside makes room for the widest operation of the program.
func (s *scratch) setAside(x *executable) error {
	value, key, vocab, group := 0, 0, 0, 1
	for _, op := range x.p.Ops {
		switch op := op.(type) {
		case *kernels.Attention:
			value, key = max(value, op.ValueDim), max(key, op.KeyDim)
			group = max(group, op.Heads/op.KVHeads)
		case *kernels.Sample:
			vocab = max(vocab, x.p.Width(op.Logits))
		}
	}
	s.scores, s.lanes = make([]float32, group*split), make([]float32, group*16)
	s.most, s.total = make([]float32, group), make([]float32, group)
	s.part = make([]float32, value)
	s.wide = make([]float32, max(16*key, value))
	s.picks = make([]kernels.Candidate, 0, vocab)
	s.alignPart()
	return nil
}

// alignPart makes the room that AMX kernels need, from a multiple of 64 bytes on.
func (s *scratch) alignPart() {
	part := make([]byte, 8<<10+63)
	s.tile.part = unsafe.Pointer(&part[-uintptr(unsafe.Pointer(&part[0]))&63])
}

// widen reads rows of fp8 numbers, n of each, into wide.
func (s *scratch) widen(b []byte, rows, n, stride int) {
	for r := range rows {
		out := s.wide[r*n:][:n]
		for i, c := range b[r*stride:][:n] {
			out[i] = num.FromE4M3(c)
		}
	}
}
