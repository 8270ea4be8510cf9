package kernels

// Backend is one place to compute: a set of CPU cores, or one GPU.
//
// Its methods are called from one goroutine at a time; it may use any number
// of threads of its own.
type Backend interface {
	// Name names the machine, for people: "cpu avx512_bf16, 2 threads".
	Name() string

	// Weight takes in a matrix or a vector and keeps it in the layout of its
	// format. src.Data may be a mapping of a file; Weight does not keep it.
	Weight(src Source, format Format) (Weight, error)

	// KV sets aside the pages of one layer group.
	KV(spec KVSpec) (KV, error)

	// Compile checks a program and makes it ready to run. The program is not
	// to be changed afterwards.
	Compile(p *Program, limits Limits) (Executable, error)

	// Close gives everything back. Executables are closed with it.
	Close() error
}

// Keeper is a backend that may have weights from an earlier start.
type Keeper interface {
	// Kept returns a weight that need not be made of its source again, or nil.
	// src has a name and a shape, and no data.
	Kept(src Source, format Format) Weight
}

// Executable is a program that a backend can run.
type Executable interface {
	// Run executes one step and fills out. out's slices are reused from call
	// to call; they are valid until the next one. A *StepError is of this step
	// alone; after any other error the backend computes no more.
	Run(step *Step, out *Result) error
}

// Growing is a backend with memory of its own, of which the pages are to have
// the rest beside weights and programs.
type Growing interface {
	// Free is the memory that can still be taken.
	Free() int64

	// Grow gives pages a number of blocks, before the first step of any program
	// that has them. Their content is gone.
	Grow(pages KV, blocks int) error
}

// Limits bound a step, so that a backend can set memory aside once.
type Limits struct {
	Tokens int // rows of a step
	Seqs   int // sequences of a step
	Rows   int // sampled rows of a step
	Frames int // rows of features of a step

	Context int // tokens of a sequence; 0: as many as the pages have room for

	// Shared has a step's memory be that of all programs compiled so, of which one
	// runs at a time: a result of one holds until any of them runs.
	Shared bool
}

// Weight is a matrix or vector as a backend keeps it.
type Weight interface {
	Shape() (out, in int) // a vector has in = 1
	Bytes() int64         // of memory that the backend keeps for it
}

// KV is the pages of one layer group as a backend keeps them.
type KV interface {
	Spec() KVSpec
	Bytes() int64
}

// KVSpec describes the pages of one group of layers, which share one block
// table. Page b of layer l holds keys (BlockTokens, Heads, KeyDim) and values
// (BlockTokens, Heads, ValueDim) in an order that is the backend's own.
type KVSpec struct {
	Layers      int
	Blocks      int // pages a layer
	BlockTokens int
	Heads       int
	KeyDim      int
	ValueDim    int   // 0 for MLA, whose values are a part of its keys
	Type        DType // F32, F16, BF16, F8E4M3, or Int8 with a float32 scale for each token and head

	// StateBytes is the size of the recurrent state that a block of this group
	// is instead of keys and values; 0 for attention.
	StateBytes int

	// Cross: a block is all that a sequence has, for Attention.Cross.
	Cross bool
}

// Single reports whether a sequence has one block of the group, however long it
// becomes.
func (s KVSpec) Single() bool { return s.StateBytes > 0 || s.Cross }

// PageBytes is the memory of one block across all layers of the group.
func (s KVSpec) PageBytes() int64 {
	if s.StateBytes > 0 {
		return int64(s.Layers) * int64(s.StateBytes)
	}
	scales := 0
	if s.Type == Int8 {
		scales = 4
		if s.ValueDim > 0 {
			scales = 8
		}
	}
	return int64(s.Layers) * int64(s.BlockTokens) * int64(s.Heads) * (int64(s.KeyDim+s.ValueDim)*int64(s.Type.Size()) + int64(scales))
}
