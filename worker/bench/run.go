package bench

import (
	"encoding/binary"
	"fmt"
	"math"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
	"roundhouse/worker/model"
)

// BlockTokens is the page size of the measurements, which is the worker's.
const BlockTokens = 32

// Runner is one model on one backend, for one sequence at a time.
type Runner struct {
	exec   kernels.Executable
	table  []int32
	groups int
	step   kernels.Step
	result kernels.Result
}

// NewRunner loads a model; a sequence has at most tokens tokens, all of which
// can be in one step.
func NewRunner(be kernels.Backend, m *model.Model, format kernels.Format, page kernels.DType, tokens int) (*Runner, error) {
	specs := m.KVGroups(BlockTokens, page)
	blocks := (tokens + BlockTokens - 1) / BlockTokens
	for i := range specs {
		specs[i].Blocks = blocks
	}
	built, err := m.Build(be, model.BuildOptions{Format: format, KV: specs})
	if err != nil {
		return nil, err
	}
	exec, err := be.Compile(built.Program, kernels.Limits{Tokens: tokens, Seqs: 1, Rows: tokens})
	if err != nil {
		return nil, err
	}
	r := &Runner{exec: exec, groups: len(specs)}
	for i := range blocks {
		r.table = append(r.table, int32(i))
	}
	return r, nil
}

// Run computes tokens of the sequence from position first on. all asks for the
// logits of every one of them, else the last is sampled greedily.
func (r *Runner) Run(ids []int32, first int, all bool) (*kernels.Result, error) {
	s := &r.step
	s.Tokens, s.Positions, s.Rows, s.Sampling, s.WantLogits = ids, s.Positions[:0], s.Rows[:0], s.Sampling[:0], all
	for i := range ids {
		s.Positions = append(s.Positions, int32(first+i))
		if all || i == len(ids)-1 {
			s.Rows = append(s.Rows, int32(i))
			s.Sampling = append(s.Sampling, kernels.Sampling{TopP: 1})
		}
	}
	q := kernels.Seq{Count: int32(len(ids)), Context: int32(first + len(ids))}
	for range r.groups {
		q.Blocks = append(q.Blocks, r.table)
	}
	s.Seqs = append(s.Seqs[:0], q)
	err := r.exec.Run(s, &r.result)
	return &r.result, err
}

// Dequantised is a backend that gives every weight the values of its format,
// and computes with them in float32: what a format would be if its operands
// lost nothing.
type Dequantised struct{ kernels.Backend }

// Weight implements kernels.Backend.
func (d Dequantised) Weight(src kernels.Source, format kernels.Format) (kernels.Weight, error) {
	if format == kernels.FormatF32 || format == kernels.FormatVector {
		return d.Backend.Weight(src, format)
	}
	x, err := ref.Dequantise(src, format)
	if err != nil {
		return nil, err
	}
	data := make([]byte, 0, 4*len(x))
	for _, v := range x {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return d.Backend.Weight(kernels.Source{Name: src.Name, Out: src.Out, In: src.In, Type: kernels.F32, Data: data}, kernels.FormatF32)
}

// Loss is how far logits are from others, a mean over rows.
type Loss struct {
	KL    float64 // Σ p·ln(p/q), p the softmax of the reference
	Agree float64 // share of rows with the same greatest logit
}

// Compare measures rows of logits against those of a reference.
func Compare(reference, rows [][]float32) (Loss, error) {
	if len(reference) != len(rows) || len(rows) == 0 {
		return Loss{}, fmt.Errorf("%d rows of logits against %d", len(rows), len(reference))
	}
	var l Loss
	for i, p := range reference {
		q := rows[i]
		zp, bestP := logSum(p)
		zq, bestQ := logSum(q)
		for k := range p {
			lp, lq := float64(p[k])-zp, float64(q[k])-zq
			l.KL += math.Exp(lp) * (lp - lq)
		}
		if bestP == bestQ {
			l.Agree++
		}
	}
	l.KL /= float64(len(rows))
	l.Agree /= float64(len(rows))
	return l, nil
}

// logSum is ln Σ exp(x), and the index of the greatest.
func logSum(x []float32) (sum float64, best int) {
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	for _, v := range x {
		sum += math.Exp(float64(v) - float64(x[best]))
	}
	return float64(x[best]) + math.Log(sum), best
}
