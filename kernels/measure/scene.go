package measure

import (
	"encoding/binary"
	"math"
	"time"

	"roundhouse/kernels"
)

// rowwise are the kernels whose time is that of their operands' memory.
var rowwise = []func(b kernels.Backend, o Options) (Figures, error){norm, layerNorm, activate, choose}

// towers are the convolutions of what hears and sees.
var towers = []func(b kernels.Backend, o Options) (Figures, error){frames, patches, depthwise}

// scene is a program in the making, for one backend.
type scene struct {
	b   kernels.Backend
	p   *kernels.Program
	err error
}

func newScene(b kernels.Backend) *scene { return &scene{b: b, p: &kernels.Program{}} }

// numbers is a matrix of small numbers of either sign.
func numbers(out, in int) kernels.Source {
	data := make([]byte, 0, 4*out*in)
	for i := range out * in {
		v := float32((i*7919+13)%1009-504) / 8192
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return kernels.Source{Name: "numbers", Out: out, In: in, Type: kernels.F32, Data: data}
}

func (s *scene) weight(src kernels.Source, f kernels.Format) kernels.Weight {
	if s.err != nil {
		return nil
	}
	w, err := s.b.Weight(src, f)
	s.err = err
	return w
}

// rows is a value of the given width whose rows are those of a small table.
func (s *scene) rows(width, n int) kernels.Tensor {
	x := s.p.New(kernels.Tokens, width)
	s.p.Do(&kernels.Embed{Out: x, Table: s.weight(numbers(min(n, 64), width), kernels.FormatF32)})
	return x
}

// time runs the program until o.Time is over and at least three times, after a first run
// that counts for nothing, and divides by how often it holds the kernel. One row of last
// comes to the host, which is what ends a run.
func (s *scene) time(f Figures, last kernels.Tensor, rows, times int, o Options) (Figures, error) {
	out := s.p.New(kernels.Sampled, s.p.Width(last))
	s.p.Do(&kernels.Pick{In: last, Out: out})
	s.p.Do(&kernels.Output{In: out})
	return s.timeStep(f, step(rows, rows), times, o)
}

func (s *scene) timeStep(f Figures, st *kernels.Step, times int, o Options) (Figures, error) {
	if s.err != nil {
		return f, s.err
	}
	e, err := s.b.Compile(s.p, kernels.Limits{Tokens: len(st.Tokens), Seqs: 1, Rows: len(st.Rows), Frames: int(st.Seqs[0].Frames)})
	if err != nil {
		return f, err
	}
	var r kernels.Result
	if err := e.Run(st, &r); err != nil {
		return f, err
	}
	n, began := 0, time.Now()
	for n < 3 || time.Since(began) < o.Time {
		if err := e.Run(st, &r); err != nil {
			return f, err
		}
		n++
	}
	f.Seconds = time.Since(began).Seconds() / float64(n*times)
	return f, nil
}

// step is n tokens of one sequence, whose context is then so long; its last row is picked.
func step(n, context int) *kernels.Step {
	st := &kernels.Step{Rows: []int32{int32(n - 1)}, Seqs: []kernels.Seq{{Count: int32(n), Context: int32(context), Blocks: [][]int32{nil}}}}
	for i := range n {
		st.Tokens, st.Positions = append(st.Tokens, int32(i%min(n, 64))), append(st.Positions, int32(context-n+i))
	}
	for i := 0; i < context; i += blockTokens {
		st.Seqs[0].Blocks[0] = append(st.Seqs[0].Blocks[0], int32(i/blockTokens))
	}
	return st
}
