package kernels

// Program is a model's forward pass as plain data: a list of operations over
// values. A model records it once; a backend reads it in Compile. Nothing is
// computed while recording, and no operation knows how many rows it will have.
type Program struct {
	Ops    []Op
	Values []Value

	// Windowed is the kinds of rows beyond Frames, which convolutions make.
	Windowed []Windowed
}

// Value is one intermediate result. Its rows are symbolic.
type Value struct {
	Rows  Rows
	Width int // columns
}

// Rows is the kind of a value's rows.
type Rows uint32

const (
	Tokens  Rows = iota // one row for each token of the step
	Sampled             // one row for each entry of Step.Rows
	Seqs                // one row for each sequence of the step (pooling)
	Frames              // one row for each frame of the step's features; kinds beyond are Program.Windowed
)

// Tensor names a value of the program that recorded it.
type Tensor int

// None is the absent operand.
const None Tensor = -1

// Op is one operation. Exactly one of the types below.
type Op interface{ op() }

// Embed reads rows of a table: out[i] = table[id[i]] · Scale. (Tokens, width)
type Embed struct {
	Out   Tensor
	Table Weight  // (vocab, width)
	IDs   IDs     // which ids of the step index the table
	Scale float32 // 0 means 1
}

// IDs names an index that the step carries for each token.
type IDs uint8

const (
	TokenIDs IDs = iota
	PositionIDs
	TypeIDs // BERT's segments
)

// Norm normalises each row, or each head of a row:
//
//	RMS:   out = x / sqrt(mean(x²) + Eps) · (w + Offset)
//	Layer: out = (x - mean) / sqrt(var + Eps) · w + Bias
//
// over Width consecutive columns (the whole row when 0). In and Out may be
// the same. Add, unless None, is added to In before, and the sum is stored to
// Add as well: the residual stream.
type Norm struct {
	In, Out Tensor
	Add     Tensor
	Weight  Weight // length Width; nil: all ones
	Bias    Weight // nil: none
	Eps     float32
	Offset  float32 // 1 for Gemma, whose weights are stored minus one
	Width   int     // columns that are normalised together; 0: all
	First   int     // where the first group of Width columns begins
	Count   int     // groups that are normalised; 0: all. Other columns are copied
	Layer   bool
}

// Linear is out = x · Wᵀ + bias (+ Add): (rows, in) → (rows, out). When
// Weights holds several matrices, their outputs stand side by side in Out.
type Linear struct {
	In, Out Tensor
	Weights []Weight // each (out_i, in)
	Biases  []Weight // nil, or one each (entries may be nil)
	Add     Tensor   // residual, added after the bias; None: none
	Scale   float32  // of the product, before bias; 0 means 1
}

// RoPE turns pairs of columns of each head by position, in place. Column
// First + h·HeadDim is where head h begins. With Axes, a pair turns by the
// position on its own axis: 0, 1 and 2 are those of Step.Axes.
type RoPE struct {
	X            Tensor
	First, Heads int
	HeadDim      int
	Rotary       int       // columns of each head that turn; 0: all
	Start        int       // first of them within the head
	Interleaved  bool      // pairs (2i, 2i+1) instead of (i, i + Rotary/2)
	InvFreq      []float64 // Rotary/2 frequencies
	Axes         []uint8   // the axis of each pair; nil: all turn by Step.Positions
	Scale        float32   // of cosine and sine (YaRN's attention factor); 0 means 1
}

// Attention writes this step's keys and values to their pages, then attends
// over all tokens of each sequence up to the query's own (all of them when
// Bidirectional): softmax(q·kᵀ·Scale)·v. Query head h reads KV head
// h / (Heads / KVHeads).
//
// With Cross, keys and values are not of the tokens but of the frames that a
// sequence brings in the step in which it begins: so many, all of which each of
// its tokens sees, in that step and in those that follow.
type Attention struct {
	Q, K, V       Tensor // (tokens, Heads·KeyDim), (tokens, KVHeads·KeyDim), (tokens, KVHeads·ValueDim)
	QFirst        int    // first column of each in its value
	KFirst        int
	VFirst        int
	Out           Tensor // (tokens, Heads·ValueDim)
	KV            KV     // nil for encoders, which keep nothing
	Layer         int    // within KV's group
	Group         int    // which block table of the step
	Heads         int
	KVHeads       int
	KeyDim        int
	ValueDim      int
	Scale         float32
	Window        int     // tokens that a query sees, itself included; 0: all
	SoftCap       float32 // cap·tanh(score/cap); 0: none
	Sinks         Weight  // one logit a head that takes part in the softmax alone; nil: none
	Bidirectional bool
	Cross         int // frames of a sequence, within the one block of KV that it has; 0: K and V are of the tokens
}

// Activate is out = f(gate) · up over the two halves of In (rows, 2·width),
// or f(In) when Up is false.
type Activate struct {
	In, Out Tensor
	Kind    Activation
	Up      bool
	Limit   float32 // gpt-oss clamps both; 0: none
}

// Activation is a scalar function.
type Activation uint8

const (
	SiLU Activation = iota
	GELU
	GELUTanh
	ReLU
	Tanh
	Sigmoid
	SwiGLUOAI // gpt-oss: gate·sigmoid(1.702·gate)·(up + 1)
	QuickGELU // x·sigmoid(1.702·x), as CLIP has it
)

// MoE routes each row to Top of the experts and sums their weighted outputs.
type MoE struct {
	In, Out   Tensor
	Router    Weight   // (experts, in); models keep it float32, since a near tie decides who computes
	Bias      Weight   // added to the scores for the choice alone; nil: none
	RouterAdd Weight   // router's own bias; nil: none
	GateUp    []Weight // one (2·inner, in) an expert, gate rows first
	GateUpAdd []Weight // biases; nil: none
	Down      []Weight // one (hidden, inner) an expert
	DownAdd   []Weight
	Top       int
	Sigmoid   bool    // scores by sigmoid instead of softmax
	TopFirst  bool    // softmax over the chosen alone (Mixtral, gpt-oss)
	Normalise bool    // the chosen weights sum to one
	Scale     float32 // of the weights; 0 means 1
	Groups    int     // experts in groups, of which TopGroups take part; 0: one
	TopGroups int
	Kind      Activation
	Limit     float32
	Add       Tensor // residual; None: none
}

// Scale multiplies by a gate and adds: out = In · f(Gate) (+ Add). Gate has
// In's width or one column. Gate None multiplies by Factor alone.
type Scale struct {
	In, Gate, Add, Out Tensor
	Kind               Activation // of the gate
	Factor             float32    // 0 means 1
}

// Delta is the gated delta rule of Qwen3-Next with its short convolution; its
// state is a recurrent KV group, whose block of a sequence is the first of its
// table and counts as zero where the sequence begins. See the reference for
// the recurrence. QKV is (tokens, channels) before the convolution: queries,
// keys (KeyHeads·KeyDim each), values (ValueHeads·ValueDim). Gates is
// (tokens, 2·ValueHeads): b, then a.
type Delta struct {
	QKV, Gates, Out Tensor
	Conv            Weight // (channels, taps)
	ALog, DtBias    Weight // (value heads)
	KV              KV
	Layer, Group    int
	KeyHeads        int
	ValueHeads      int
	KeyDim          int
	ValueDim        int
}

// StateBytes is the size of the state of one sequence and layer: the last
// taps-1 inputs of the convolution, (taps-1, channels), then the memory
// (ValueHeads, KeyDim, ValueDim), in float32.
func (d *Delta) StateBytes() int {
	channels, taps := d.Conv.Shape()
	return 4 * ((taps-1)*channels + d.ValueHeads*d.KeyDim*d.ValueDim)
}

// Columns copies columns [First, First+width of Out) of In.
type Columns struct {
	In, Out Tensor
	First   int
}

// Place puts rows of media where tokens stand for them, in place: columns
// [First, First + width of X) of row Step.MediaRow[i] of Step.Media replace row i
// of X, or are added to it. A token whose MediaRow is -1 keeps its row.
type Place struct {
	X     Tensor // (tokens, width)
	First int
	Width int // columns of a row of Step.Media, the same in all of a program
	Add   bool
}

// Pick gathers the rows that Step.Rows names: (Tokens) → (Sampled).
type Pick struct{ In, Out Tensor }

// Pool reduces the rows of each sequence to one: (Tokens) → (Seqs).
type Pool struct {
	In, Out   Tensor
	Kind      Pooling
	Normalise bool // to unit length
}

// Pooling names how a sequence becomes one row.
type Pooling uint8

const (
	PoolCLS Pooling = iota
	PoolMean
	PoolLast
)

// Sample ends a program that generates: it takes the logits of the sampled
// rows and chooses by Step.Sampling.
type Sample struct {
	Logits  Tensor  // (Sampled, vocab)
	SoftCap float32 // 0: none
}

// Output ends a program that embeds or scores: its rows come back whole.
type Output struct{ In Tensor }

func (*Embed) op()     {}
func (*Norm) op()      {}
func (*Linear) op()    {}
func (*RoPE) op()      {}
func (*Attention) op() {}
func (*Activate) op()  {}
func (*MoE) op()       {}
func (*Scale) op()     {}
func (*Delta) op()     {}
func (*Columns) op()   {}
func (*Place) op()     {}
func (*Pick) op()      {}
func (*Pool) op()      {}
func (*Sample) op()    {}
func (*Output) op()    {}

// New makes a value of the given shape, to be the Out of an operation.
func (p *Program) New(rows Rows, width int) Tensor {
	p.Values = append(p.Values, Value{Rows: rows, Width: width})
	return Tensor(len(p.Values) - 1)
}

// Do appends an operation.
func (p *Program) Do(op Op) { p.Ops = append(p.Ops, op) }

// Width is the number of columns of a value.
func (p *Program) Width(t Tensor) int { return p.Values[t].Width }
