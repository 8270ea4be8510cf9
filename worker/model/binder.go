package model

import (
	"fmt"
	"slices"
	"strings"

	"roundhouse/kernels"
	"roundhouse/worker/weights"
)

// binder hands out weights by name. Without a backend it only checks that
// they are there, and adds up what they would take.
type binder struct {
	set      *weights.Set
	be       kernels.Backend // nil: check and count
	format   kernels.Format
	progress func(done, total int64)
	total    int64 // bytes of the files that will be read, for progress

	bound   map[string]kernels.Weight
	missing []string
	read    int64 // bytes of files bound so far
	bytes   int64 // of memory for the weights bound so far
	err     error // the first that the backend or a file gave
}

// counted is a weight of the first pass: a shape and a size.
type counted struct {
	out, in int
	bytes   int64
}

func (w counted) Shape() (out, in int) { return w.out, w.in }
func (w counted) Bytes() int64         { return w.bytes }

// part is a slice of one tensor of a file: Count rows from First on. The
// tensor has Rows rows of In columns, whatever its shape in the file.
type part struct {
	name  string
	shape []int // as it should be in the file
	first int
	count int
}

// matrix binds an (out, in) matrix of a linear.
func (b *binder) matrix(name string, out, in int) kernels.Weight {
	return b.bind(b.linearFormat(in), in, part{name, []int{out, in}, 0, out})
}

// rows binds count rows of an (out, in) matrix from first on.
func (b *binder) rows(name string, out, in, first, count int) kernels.Weight {
	return b.bind(b.linearFormat(in), in, part{name, []int{out, in}, first, count})
}

// stack binds two (out, in) matrices one below the other.
func (b *binder) stack(upper, lower string, out, in int) kernels.Weight {
	return b.bind(b.linearFormat(in), in, part{upper, []int{out, in}, 0, out}, part{lower, []int{out, in}, 0, out})
}

// table binds an embedding or an output head. These keep at least 16 bits,
// since they are most of what a small model knows of rare tokens.
func (b *binder) table(name string, out, in int) kernels.Weight {
	return b.bind(wideFormat(b.format), in, part{name, []int{out, in}, 0, out})
}

// router binds the matrix that scores experts, which stays float32: a near tie
// that falls the other way is another expert.
func (b *binder) router(name string, out, in int) kernels.Weight {
	return b.bind(kernels.FormatF32, in, part{name, []int{out, in}, 0, out})
}

// vector binds a bias, or the weight of a norm.
func (b *binder) vector(name string, n int) kernels.Weight {
	return b.bind(kernels.FormatVector, 1, part{name, []int{n}, 0, n})
}

// optional binds a vector where yes, and is nil otherwise.
func (b *binder) optional(yes bool, name string, n int) kernels.Weight {
	if !yes {
		return nil
	}
	return b.vector(name, n)
}

// has says whether the files have a tensor.
func (b *binder) has(name string) bool { return b.set.Lookup(name) != nil }

// wideFormat is the format of what is kept with 16 bits at least.
func wideFormat(f kernels.Format) kernels.Format {
	if f == kernels.FormatF32 || f == kernels.FormatF16 {
		return f
	}
	return kernels.FormatBF16
}

// int4Group is the number of columns that share a scale; a matrix whose
// columns are no multiple of it stays in 16 bits.
const int4Group = 128

func (b *binder) linearFormat(in int) kernels.Format {
	if b.format == kernels.FormatInt4 && in%int4Group != 0 {
		return kernels.FormatBF16
	}
	return b.format
}

// bind makes one weight of in columns from the rows of parts. The same
// request gives the same weight, so that tied embeddings are kept once.
func (b *binder) bind(format kernels.Format, in int, parts ...part) kernels.Weight {
	key := fmt.Sprint(format, parts)
	if w, ok := b.bound[key]; ok {
		return w
	}
	w := b.make(format, in, parts)
	b.bound[key] = w
	return w
}

func (b *binder) make(format kernels.Format, in int, parts []part) kernels.Weight {
	out := 0
	for _, p := range parts {
		out += p.count
	}
	plan := counted{out, in, formatBytes(format, out, in)}
	tensors := make([]*weights.Tensor, len(parts))
	for i, p := range parts {
		tensors[i] = b.find(p)
		if tensors[i] == nil {
			return plan
		}
		if tensors[i].Type != tensors[0].Type {
			b.missing = append(b.missing, fmt.Sprintf("%s is %s, but %s is %s", p.name, tensors[i].Type, parts[0].name, tensors[0].Type))
			return plan
		}
		b.read += int64(p.count) * int64(in) * int64(tensors[i].Type.Bits()) / 8
	}
	b.bytes += plan.bytes
	if b.be == nil || b.err != nil {
		return plan
	}
	w, err := b.load(format, out, in, parts, tensors)
	if err != nil {
		b.err = err
		return plan
	}
	if b.progress != nil {
		b.progress(b.read, b.total)
	}
	return w
}

// find looks a part's tensor up and checks its shape and type.
func (b *binder) find(p part) *weights.Tensor {
	t := b.set.Lookup(p.name)
	if t == nil {
		b.missing = append(b.missing, p.name+" is missing")
		return nil
	}
	if !slices.Equal(t.Shape, p.shape) {
		b.missing = append(b.missing, fmt.Sprintf("%s has shape %v; want %v", p.name, t.Shape, p.shape))
		return nil
	}
	if _, ok := storedType(t.Type); !ok {
		b.missing = append(b.missing, fmt.Sprintf("%s is stored as %s; want F32, F16 or BF16", p.name, t.Type))
		return nil
	}
	return t
}

func (b *binder) load(format kernels.Format, out, in int, parts []part, tensors []*weights.Tensor) (kernels.Weight, error) {
	names := make([]string, len(parts))
	var data []byte
	dtype, _ := storedType(tensors[0].Type)
	for i, p := range parts {
		names[i] = p.name
		all, err := tensors[i].Data()
		if err != nil {
			return nil, err
		}
		row := in * tensors[i].Type.Bits() / 8
		rows := all[p.first*row : (p.first+p.count)*row]
		if n := finite(rows, dtype); n >= 0 {
			return nil, fmt.Errorf("%s: %s: element %d is not a finite number; the file is damaged or was never whole", tensors[i].File(), p.name, p.first*in+n)
		}
		if len(parts) == 1 {
			data = rows
		} else {
			data = append(data, rows...)
		}
	}
	return b.be.Weight(kernels.Source{Name: strings.Join(names, " + "), Out: out, In: in, Type: dtype, Data: data}, format)
}

// storedType is the type of a tensor as kernels name it.
func storedType(t weights.DType) (kernels.DType, bool) {
	switch t {
	case weights.F32:
		return kernels.F32, true
	case weights.F16:
		return kernels.F16, true
	case weights.BF16:
		return kernels.BF16, true
	}
	return 0, false
}

// formatBytes is what a weight takes in a format.
func formatBytes(format kernels.Format, out, in int) int64 {
	n := int64(out) * int64(in)
	switch format {
	case kernels.FormatBF16, kernels.FormatF16:
		return 2 * n
	case kernels.FormatInt8, kernels.FormatFP8:
		return n + 4*int64(out) // a float32 scale a row
	case kernels.FormatInt4:
		return n/2 + n/int4Group*2 // an fp16 scale a group
	case kernels.FormatMXFP4:
		return n/2 + n/32
	case kernels.FormatGPTQ, kernels.FormatAWQ:
		return n/2 + n/int4Group*3
	}
	return 4 * n
}
