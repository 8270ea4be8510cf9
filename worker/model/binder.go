package model

import (
	"fmt"
	"maps"
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
	wideHead bool // the head keeps 16 bits whatever the format
	room     AdapterRoom
	fine     bool      // four-bit codes in groups of 32 and 64 stay as they are
	quant    *quant    // nil: the checkpoint holds floats
	gguf     *ggufFile // nil: the checkpoint is a folder
	progress func(done, total int64)
	stop     func() error // see BuildOptions
	total    int64        // bytes of the files that will be read, for progress

	bound   map[string]kernels.Weight
	missing []string // what is not as it should be, the first of it
	faulty  int      // how much that is in all
	read    int64    // bytes of files bound so far
	bytes   int64    // of memory for the weights bound so far
	err     error    // the first that the backend or a file gave

	asked func(piece) // nil, or told of everything that is looked up
}

// counted is a weight of the first pass: a shape and a size.
type counted struct {
	format  kernels.Format
	out, in int
	bytes   int64
}

func (w counted) Shape() (out, in int) { return w.out, w.in }
func (w counted) Bytes() int64         { return w.bytes }

// matrix binds an (out, in) matrix of a linear.
func (b *binder) matrix(name string, out, in int) kernels.Weight {
	if w, ok := b.quantised([]string{name}, out, in); ok {
		return b.bind(w)
	}
	w := wanted{format: b.linearFormat(in), out: out, in: in, pieces: []piece{whole(name, out, in)}}
	b.block(&w)
	return b.bind(w)
}

// stack binds two (out, in) matrices of a linear one below the other.
func (b *binder) stack(upper, lower string, out, in int) kernels.Weight {
	if w, ok := b.quantised([]string{upper, lower}, out, in); ok {
		return b.bind(w)
	}
	return b.bind(wanted{format: b.linearFormat(in), out: 2 * out, in: in, pieces: []piece{whole(upper, out, in), whole(lower, out, in)}})
}

// table binds an embedding or a small head. These keep at least 16 bits, since
// they are most of what a small model knows of rare tokens.
func (b *binder) table(name string, out, in int) kernels.Weight {
	return b.bind(wanted{format: wideFormat(b.format), out: out, in: in, pieces: []piece{whole(name, out, in)}})
}

// vocabulary binds the matrix that scores all tokens, which may be the embedding
// as well.
func (b *binder) vocabulary(name string, out, in int) kernels.Weight {
	return b.bind(wanted{format: b.headFormat(b.lookup(name)), out: out, in: in, pieces: []piece{whole(name, out, in)}})
}

// headFormat is the format of that matrix, which is stored as t.
func (b *binder) headFormat(t *weights.Tensor) kernels.Format {
	format := headFormat(b.format, b.wideHead)
	if t != nil && !b.wideHead && isBlocks(t.Type) {
		return blockFormat(format)
	}
	return format
}

// headFormat is the format of that matrix. Every token reads all of it, and of a
// small model it is most of what there is to read: where the linears are
// quantised it has eight bits, whose loss does not show beside theirs.
func headFormat(linears kernels.Format, wide bool) kernels.Format {
	switch linears {
	case kernels.FormatInt4, kernels.FormatInt8, kernels.FormatFP8:
		if !wide {
			return kernels.FormatInt8
		}
	}
	return wideFormat(linears)
}

// router binds the matrix that scores experts, which stays float32: a near tie
// that falls the other way is another expert.
func (b *binder) router(name string, out, in int) kernels.Weight {
	return b.bind(wanted{format: kernels.FormatF32, out: out, in: in, pieces: []piece{whole(name, out, in)}})
}

// vector binds a bias, or the weight of a norm.
func (b *binder) vector(name string, n int) kernels.Weight {
	return b.bind(wanted{format: kernels.FormatVector, out: n, in: 1, pieces: []piece{whole(name, n)}})
}

// optional binds a vector where yes, and is nil otherwise.
func (b *binder) optional(yes bool, name string, n int) kernels.Weight {
	if !yes {
		return nil
	}
	return b.vector(name, n)
}

// has reports whether the files have a tensor.
func (b *binder) has(name string) bool { return b.lookup(name) != nil }

// lookup finds a tensor by the name that Hugging Face gives it; nil if there is
// none.
func (b *binder) lookup(name string) *weights.Tensor { return b.set.Lookup(b.stored(name)) }

// stored is the name of a tensor in the files.
func (b *binder) stored(name string) string {
	if b.gguf != nil {
		return b.gguf.form.name(name)
	}
	return name
}

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

// wanted is a weight that a program wants, and how to get it out of the files.
type wanted struct {
	format  kernels.Format
	out, in int
	pieces  []piece
	blocks  kernels.DType // of GGUF, that stay as they are; F32: none do

	// make puts the weight together from the bytes of the pieces, and the type
	// of those that are floats; nil puts the pieces one below the other.
	make func(data [][]byte, floats kernels.DType) (kernels.Source, error)
}

// piece is count slices of a tensor's first dimension, from first on.
type piece struct {
	name  string
	shape []int           // as it should be in the file
	types []weights.DType // that it may have; nil: floats
	first int
	count int
}

// whole is all of a tensor of floats.
func whole(name string, shape ...int) piece {
	if len(shape) == 0 {
		return piece{name: name, count: 1} // a scalar
	}
	return piece{name: name, shape: shape, count: shape[0]}
}

// elements is how many numbers a slice of the first dimension has.
func (p piece) elements() int64 {
	n := int64(1)
	for _, d := range p.shape[min(1, len(p.shape)):] {
		n *= int64(d)
	}
	return n
}

// bind makes one weight. The same request gives the same weight, so that tied
// embeddings are kept once.
func (b *binder) bind(w wanted) kernels.Weight {
	if b.hopeless() {
		return counted{out: w.out, in: w.in}
	}
	key := fmt.Sprint(w.format, w.out, w.in, w.pieces)
	if have, ok := b.bound[key]; ok {
		return have
	}
	made := b.make(w)
	b.bound[key] = made
	return made
}

// mostFaults is how many faults are listed, and a thousandth of those after
// which looking ends: a hostile config.json can name millions of weights.
const mostFaults = 50

// hopeless says that so much is wrong that looking on is a waste.
func (b *binder) hopeless() bool { return b.faulty > 1000*mostFaults }

// miss notes a weight that is not as it should be.
func (b *binder) miss(format string, args ...any) {
	if b.faulty++; b.faulty <= mostFaults {
		b.missing = append(b.missing, fmt.Sprintf(format, args...))
	}
}

func (b *binder) make(w wanted) kernels.Weight {
	plan := counted{w.format, w.out, w.in, formatBytes(w.format, w.out, w.in)}
	n := int64(w.out) * int64(w.in)
	switch four := w.format == kernels.FormatGPTQ || w.format == kernels.FormatAWQ; {
	case four && b.quant.group < int4Group:
		plan.bytes = n/2 + n/32*3 // an fp16 scale and a zero point
	case w.format == kernels.FormatInt4 && w.blocks == kernels.Q4_0:
		plan.bytes = n/2 + n/32*2
	}
	tensors := make([]*weights.Tensor, len(w.pieces))
	float := weights.DType("") // of the pieces that are floats; they must agree
	found := true
	for i, p := range w.pieces {
		if tensors[i] = b.find(p); tensors[i] == nil {
			found = false // the other pieces may be missing too, and are listed
			continue
		}
		if t := tensors[i].Type; slices.Contains(floats, t) {
			if float != "" && t != float {
				b.miss("%s is stored as %s, beside %s as %s", p.name, t, w.pieces[0].name, float)
				found = false
			}
			float = t
		}
		b.read += storedBytes(tensors[i].Type, int64(p.count)*p.elements())
	}
	if !found {
		return plan
	}
	b.bytes += plan.bytes
	if b.be == nil || b.err != nil {
		return plan
	}
	loaded, err := b.load(w, tensors)
	if err != nil {
		b.err = err
		return plan
	}
	if b.progress != nil {
		b.progress(b.read, b.total)
	}
	if b.stop != nil {
		b.err = b.stop()
	}
	return loaded
}

// find looks a piece's tensor up and checks its shape and type.
func (b *binder) find(p piece) *weights.Tensor {
	if b.asked != nil {
		b.asked(p)
	}
	name := b.stored(p.name)
	t := b.set.Lookup(name)
	if t == nil {
		b.miss("%s is missing", name)
		return nil
	}
	if !slices.Equal(t.Shape, p.shape) {
		b.miss("%s has shape %v; want %v", name, t.Shape, p.shape)
		return nil
	}
	types := p.types
	if types == nil {
		types = floats
	}
	if b.gguf != nil {
		b.gguf.asked[name] = true
		if len(p.shape) > 1 {
			types = slices.Concat(types, slices.Sorted(maps.Keys(blockTypes)))
		}
	}
	if !slices.Contains(types, t.Type) {
		b.miss("%s is stored as %s; want %v", name, t.Type, types)
		return nil
	}
	return t
}

// floats are the types of weights that are not quantised.
var floats = []weights.DType{weights.F32, weights.F16, weights.BF16}

func (b *binder) load(w wanted, tensors []*weights.Tensor) (kernels.Weight, error) {
	names, parts, data := make([]string, len(w.pieces)), make([]string, len(w.pieces)), make([][]byte, len(w.pieces))
	for i, p := range w.pieces {
		names[i] = b.stored(p.name)
		parts[i] = names[i]
		if len(p.shape) > 0 && p.count != p.shape[0] {
			parts[i] += fmt.Sprintf("[%d:%d]", p.first, p.first+p.count)
		}
	}
	name := strings.Join(parts, " + ")
	if k, ok := b.be.(kernels.Keeper); ok {
		if kept := k.Kept(kernels.Source{Name: name, Out: w.out, In: w.in}, w.format); kept != nil {
			return kept, nil
		}
	}
	stored := kernels.F32
	for i, p := range w.pieces {
		if slices.Contains(floats, tensors[i].Type) || isBlocks(tensors[i].Type) {
			stored = storedType(tensors[i].Type)
		}
		all, err := tensors[i].Data()
		if err != nil {
			return nil, err
		}
		size := storedBytes(tensors[i].Type, p.elements())
		data[i] = all[int64(p.first)*size : int64(p.first+p.count)*size]
		if err := allFinite(data[i], tensors[i], int64(p.first)*p.elements()); err != nil {
			return nil, err
		}
		if b.gguf != nil {
			data[i] = b.gguf.unpairRows(names[i], data[i], p.count)
		}
	}
	src := kernels.Source{Type: stored}
	switch {
	case w.make != nil:
		var err error
		if src, err = w.make(data, stored); err != nil {
			return nil, fmt.Errorf("%s: %w", names[0], err)
		}
	case len(data) == 1:
		src.Data = data[0]
	default:
		src.Data = slices.Concat(data...)
	}
	src.Name, src.Out, src.In = name, w.out, w.in
	return b.be.Weight(src, w.format)
}

// storedType is the type of a tensor as kernels name it. Types that no weight
// may have are bytes to us.
func storedType(t weights.DType) kernels.DType {
	switch t {
	case weights.F32:
		return kernels.F32
	case weights.F16:
		return kernels.F16
	case weights.BF16:
		return kernels.BF16
	case weights.F8E4M3:
		return kernels.F8E4M3
	case weights.I8:
		return kernels.Int8
	case weights.I32, weights.U32:
		return kernels.Int32
	}
	if t, ok := blockTypes[t]; ok {
		return t
	}
	return kernels.UInt8
}

// storedBytes is the size of n elements in a file; of blocks, of whole ones.
func storedBytes(t weights.DType, n int64) int64 {
	if bits := t.Bits(); bits > 0 {
		return n * int64(bits) / 8
	}
	elements, bytes := storedType(t).Block()
	return n / int64(elements) * int64(bytes)
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
