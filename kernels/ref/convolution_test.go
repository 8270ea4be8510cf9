package ref_test

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
)

// golden is one convolution of testdata/convolution.json.
type golden struct {
	Channels, Outputs, Groups, Lines, Line int
	Kernel, Stride, Dilation, Places       [2]int
	Padding                                [4]int // before the lines and a line, then behind them
	Bias                                   bool
	Out                                    []float64
}

// numbers is what convolution.py makes of a seed.
func numbers(seed, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32((i*7919+seed)%1009-504) / 512
	}
	return x
}

// source wraps numbers as a float32 matrix.
func source(name string, out, in int, x []float32) kernels.Source {
	var data []byte
	for _, v := range x {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return kernels.Source{Name: name, Out: out, In: in, Type: kernels.F32, Data: data}
}

// weight is torch's (outputs, channels, taps down, taps along) with the channels
// of a tap side by side.
func (g *golden) weight() kernels.Source {
	channels, taps := g.Channels/g.Groups, g.Kernel[0]*g.Kernel[1]
	from := numbers(101, g.Outputs*channels*taps)
	to := make([]float32, len(from))
	for o := range g.Outputs {
		for c := range channels {
			for t := range taps {
				to[(o*taps+t)*channels+c] = from[(o*channels+c)*taps+t]
			}
		}
	}
	return source("weight", g.Outputs, taps*channels, to)
}

// The reference computes what torch does.
func TestTorchConvolutions(t *testing.T) {
	text, err := os.ReadFile("testdata/convolution.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases map[string]*golden }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for name, g := range file.Cases {
		t.Run(name, func(t *testing.T) { g.test(t) })
	}
}

func (g *golden) test(t *testing.T) {
	b, p := ref.New(), &kernels.Program{}
	weight := func(src kernels.Source, f kernels.Format) kernels.Weight {
		w, err := b.Weight(src, f)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	op := &kernels.Convolution{In: p.New(kernels.Frames, g.Channels), Out: p.New(kernels.Tokens, g.Outputs), Groups: g.Groups,
		Window: kernels.Window{Kernel: g.Kernel, Stride: g.Stride, Dilation: g.Dilation, Before: [2]int(g.Padding[:2]), After: [2]int(g.Padding[2:])},
		Weight: weight(g.weight(), kernels.FormatF32)}
	if g.Bias {
		op.Bias = weight(source("bias", g.Outputs, 1, numbers(307, g.Outputs)), kernels.FormatVector)
	}
	p.Do(&kernels.Features{Out: op.In})
	p.Do(op)
	p.Do(&kernels.Output{In: op.Out})
	frames, count := g.Lines*g.Line, g.Places[0]*g.Places[1]
	e, err := b.Compile(p, kernels.Limits{Tokens: count, Seqs: 1, Frames: frames})
	if err != nil {
		t.Fatal(err)
	}
	step := &kernels.Step{Tokens: make([]int32, count), Positions: make([]int32, count), Features: numbers(13, frames*g.Channels),
		Seqs: []kernels.Seq{{Count: int32(count), Context: int32(count), Frames: int32(frames), Line: int32(g.Line)}}}
	var out kernels.Result
	if err := e.Run(step, &out); err != nil {
		t.Fatal(err)
	}
	for i, row := range out.Output {
		for o, got := range row {
			if want := g.Out[i*g.Outputs+o]; math.Abs(float64(got)-want) > 1e-6*(1+math.Abs(want)) {
				t.Fatalf("place %d, output %d: got %v; torch has %v", i, o, got, want)
			}
		}
	}
}
