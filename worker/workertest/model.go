package workertest

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"roundhouse/kernels"
	"roundhouse/worker/kv"
)

// Model is a kernels.Executable.
type Model struct {
	Vocab  int
	Groups []kv.Group

	// Bias, when set, adds to the logits of a row, given all tokens so far:
	// for tests that want certain texts.
	Bias func(context []int32, logits []float32)

	// Width, when set, makes it a model that embeds: a row of so many numbers
	// for each sequence, of its tokens and types.
	Width int

	// Adapters are what lies in the slots of adapters: two of unlike numbers
	// write unlike keys and values.
	Adapters []uint64

	mu     sync.Mutex
	fail   error
	steps  []Shape
	gate   chan struct{}
	pages  [][]slot // (groups)(blocks · BlockTokens)
	result []kernels.Choice
}

// Shape is what a step looked like.
type Shape struct{ Tokens, Seqs, Rows int }

// slot is what one token left in one page.
type slot struct {
	written  bool
	token    int32
	position int32
	chain    uint64 // of all tokens up to this one
	adapter  uint64 // that wrote it
}

// New makes a model whose pages are those of groups.
func New(vocab int, groups []kv.Group) *Model {
	m := &Model{Vocab: vocab, Groups: groups}
	for _, g := range groups {
		m.pages = append(m.pages, make([]slot, g.Blocks*g.BlockTokens))
	}
	return m
}

// Fail makes every step from now on return err.
func (m *Model) Fail(err error) {
	m.mu.Lock()
	m.fail = err
	m.mu.Unlock()
}

// Hold makes steps wait until the returned function is called.
func (m *Model) Hold() (release func()) {
	gate := make(chan struct{})
	m.mu.Lock()
	m.gate = gate
	m.mu.Unlock()
	return sync.OnceFunc(func() {
		m.mu.Lock()
		m.gate = nil
		m.mu.Unlock()
		close(gate)
	})
}

// Steps returns the shapes of all steps so far.
func (m *Model) Steps() []Shape {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.steps)
}

// Run computes one step.
func (m *Model) Run(step *kernels.Step, out *kernels.Result) error {
	m.mu.Lock()
	gate, fail := m.gate, m.fail
	m.steps = append(m.steps, Shape{len(step.Tokens), len(step.Seqs), len(step.Rows)})
	m.mu.Unlock()
	if gate != nil {
		<-gate
	}
	if fail != nil {
		return fail
	}
	if m.Width > 0 {
		out.Output = m.embed(step)
		return nil
	}
	owner := make([]int, len(step.Tokens))
	for i, s := range step.Seqs {
		for r := s.First; r < s.First+s.Count; r++ {
			owner[r] = i
			if err := m.write(step, s, int(r)); err != nil {
				return err
			}
		}
	}
	m.result = m.result[:0]
	for i, row := range step.Rows {
		logits, err := m.logits(step.Seqs[owner[row]], int(step.Positions[row]))
		if err != nil {
			return err
		}
		m.result = append(m.result, choose(logits, &step.Sampling[i]))
	}
	out.Sampled = m.result
	return nil
}

// embed makes a row of each sequence.
func (m *Model) embed(step *kernels.Step) [][]float32 {
	var rows [][]float32
	for _, s := range step.Seqs {
		row := make([]float32, m.Width)
		for r := s.First; r < s.First+s.Count; r++ {
			for i := range row {
				x := mix(uint64(step.Tokens[r])+uint64(step.Types[r])<<32, uint64(i))
				row[i] += (float32(x>>40)/(1<<23) - 1) / float32(s.Count)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// at finds the slot of a position.
func (m *Model) at(group int, s kernels.Seq, position int) (*slot, error) {
	bt := m.Groups[group].BlockTokens
	table := s.Blocks[group]
	if position/bt >= len(table) {
		return nil, fmt.Errorf("position %d lies beyond a table of %d blocks", position, len(table))
	}
	b := table[position/bt]
	if b < 0 {
		return nil, fmt.Errorf("position %d lies in a block that was given back", position)
	}
	return &m.pages[group][int(b)*bt+position%bt], nil
}

func (m *Model) write(step *kernels.Step, s kernels.Seq, row int) error {
	position := int(step.Positions[row])
	if want := int(s.Context-s.Count) + row - int(s.First); position != want {
		return fmt.Errorf("row %d has position %d; want %d", row, position, want)
	}
	for g := range m.Groups {
		if m.Groups[g].State {
			continue
		}
		chain := 14695981039346656037 ^ m.adapter(s)
		if position > 0 {
			before, err := m.at(g, s, position-1)
			if err != nil && m.Groups[g].Window != 1 {
				return err
			}
			if err == nil {
				if !before.written || int(before.position) != position-1 {
					return fmt.Errorf("group %d: position %d attends to position %d, which was not written", g, position, position-1)
				}
				chain = before.chain
			}
		}
		here, err := m.at(g, s, position)
		if err != nil {
			return err
		}
		*here = slot{true, step.Tokens[row], int32(position), mix(chain, uint64(step.Tokens[row])+1), m.adapter(s)}
	}
	return nil
}

// adapter is what lies in the slot that a sequence names; 0: it names none.
func (m *Model) adapter(s kernels.Seq) uint64 {
	if s.Adapter == 0 {
		return 0
	}
	return m.Adapters[s.Adapter-1]
}

// logits reads all that the query at position sees.
func (m *Model) logits(s kernels.Seq, position int) ([]float32, error) {
	sum := uint64(0)
	var context []int32
	for g := range m.Groups {
		if m.Groups[g].State {
			continue
		}
		first := 0
		if w := m.Groups[g].Window; w > 0 {
			first = max(0, position-w+1)
		}
		for p := first; p <= position; p++ {
			x, err := m.at(g, s, p)
			if err != nil {
				return nil, err
			}
			if !x.written || int(x.position) != p {
				return nil, fmt.Errorf("group %d: position %d reads position %d, which was not written", g, position, p)
			}
			if x.adapter != m.adapter(s) {
				return nil, fmt.Errorf("group %d: position %d reads position %d, which another adapter wrote", g, position, p)
			}
			sum = mix(sum, x.chain)
			if g == 0 {
				context = append(context, x.token)
			}
		}
	}
	logits := make([]float32, m.Vocab)
	for v := range logits {
		logits[v] = float32(mix(sum, uint64(v))>>40) / (1 << 21)
	}
	if m.Bias != nil {
		m.Bias(context, logits)
	}
	return logits, nil
}

// mix is a step of a hash (splitmix64's finaliser over the xor).
func mix(a, b uint64) uint64 {
	x := a*0x9E3779B97F4A7C15 ^ b + 0x632BE59BD9B4E019
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// choose follows kernels.Sampling: mask, edits, temperature, one draw. Top-k,
// top-p and min-p are the kernels' own business and tested there.
func choose(raw []float32, s *kernels.Sampling) kernels.Choice {
	logits := slices.Clone(raw)
	for v := range logits {
		if s.Allowed != nil && s.Allowed[v/32]>>(v%32)&1 == 0 {
			logits[v] = float32(math.Inf(-1))
		}
	}
	for _, e := range s.Edits {
		x := logits[e.Token]
		if x > 0 {
			x /= e.Repetition
		} else {
			x *= e.Repetition
		}
		logits[e.Token] = x + e.Add
	}
	best := draw(logits, s)
	c := kernels.Choice{Token: int32(best), Logit: raw[best], LogSumExp: logSumExp(raw), Rank: 1}
	order := make([]int, len(raw))
	for v := range order {
		order[v] = v
		if raw[v] > raw[best] {
			c.Rank++
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case raw[a] > raw[b]:
			return -1
		case raw[a] < raw[b]:
			return 1
		}
		return 0
	})
	for _, v := range order[:min(int(s.Top), len(order))] {
		c.Top = append(c.Top, kernels.Candidate{Token: int32(v), Logit: raw[v]})
	}
	for _, v := range s.Probe {
		c.Probe = append(c.Probe, raw[v])
	}
	return c
}

func draw(logits []float32, s *kernels.Sampling) int {
	best := 0
	for v := range logits {
		if logits[v] > logits[best] {
			best = v
		}
	}
	if s.Temperature == 0 || s.TopK == 1 {
		return best
	}
	total := 0.0
	for _, x := range logits {
		total += math.Exp(float64((x - logits[best]) / s.Temperature))
	}
	left := s.Uniform() * total
	for v, x := range logits {
		if left -= math.Exp(float64((x - logits[best]) / s.Temperature)); left < 0 {
			return v
		}
	}
	return best
}

func logSumExp(logits []float32) float32 {
	most := slices.Max(logits)
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x - most))
	}
	return most + float32(math.Log(sum))
}

// Release forgets all pages, as an engine's memory does that is given back.
func (m *Model) Release() error {
	for _, p := range m.pages {
		clear(p)
	}
	return nil
}

// Load gives the model back, with empty pages.
func (m *Model) Load() (kernels.Executable, error) { return m, nil }
