package model

import (
	"fmt"
	"math"
	"sort"

	"roundhouse/kernels"
)

// PlanOptions say what a model is to be served with.
type PlanOptions struct {
	Memory      int64   // bytes of the device that the worker may plan with
	Utilisation float64 // share of Memory to use; 0: 0.92
	Format      kernels.Format
	KVType      kernels.DType
	BlockTokens int
	MaxModelLen int            // longest sequence; 0: the model's own
	Limits      kernels.Limits // of a step
}

// Plan is how a model would use memory, known before a weight is read.
type Plan struct {
	Weights     int64 // bytes
	Activations int64 // bytes: every value of the program at the limits of a step
	KV          int64 // bytes left for the cache

	KVSpecs     []kernels.KVSpec // for BuildOptions.KV: Blocks is filled in
	KVTokens    int              // that the cache holds, of groups without a window where there are any
	MaxModelLen int              // longest sequence asked for
	Longest     int              // longest sequence that the cache could hold, at most what the model was made for
	Concurrency float64          // sequences of MaxModelLen that the cache holds at once
}

// defaultUtilisation is vLLM's gpu_memory_utilization.
const defaultUtilisation = 0.92

// Plan divides memory between weights, activations and the KV cache. The plan
// is returned with the error too, as far as it goes; an error says that the
// model cannot be served so, in vLLM's words where vLLM has words for it.
func (m *Model) Plan(o PlanOptions) (Plan, error) {
	if o.Utilisation == 0 {
		o.Utilisation = defaultUtilisation
	}
	if o.MaxModelLen == 0 {
		o.MaxModelLen = m.config.MaxPositions
	}
	p := Plan{Weights: m.WeightBytes(o.Format), Activations: m.activations(o.Limits), MaxModelLen: o.MaxModelLen}
	if o.MaxModelLen < 1 || o.MaxModelLen > m.config.MaxPositions {
		return p, fmt.Errorf("max_model_len is %d; want 1 to %d, which is what the model was made for", o.MaxModelLen, m.config.MaxPositions)
	}
	if err := m.settings.quant.fits(o.Format); err != nil {
		return p, err
	}
	if o.BlockTokens < 1 || o.Limits.Tokens < 1 || o.Limits.Seqs < 1 {
		return p, fmt.Errorf("blocks of %d tokens, steps of %d tokens and %d sequences; want at least 1 of each", o.BlockTokens, o.Limits.Tokens, o.Limits.Seqs)
	}
	usable := int64(float64(o.Memory) * o.Utilisation)
	p.KV = max(usable-p.Weights-p.Activations, 0)
	c := m.cache(o)
	n := c.largest(p.KV)
	if n == 0 {
		return p, inVLLMsWords("No available memory for the cache blocks. Weights take %s and activations %s of %s. Try increasing `gpu_memory_utilization` when initializing the engine, or a smaller quantization",
			gib(p.Weights), gib(p.Activations), gib(usable))
	}
	p.KVSpecs = c.specs(n)
	p.KVTokens = n * o.BlockTokens
	p.Concurrency = c.concurrency(p.KVSpecs, o.MaxModelLen)
	p.Longest = c.longest(p.KV, m.config.MaxPositions)
	if need := c.need(o.MaxModelLen); need > p.KV {
		return p, inVLLMsWords("To serve at least one request with the model's max seq len (%d), (%s KV cache is needed, which is larger than the available KV cache memory (%s). Based on the available memory, the estimated maximum model length is %d. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine",
			o.MaxModelLen, gib(need), gib(p.KV), p.Longest)
	}
	return p, nil
}

// inVLLMsWords makes an error of a sentence that vLLM's users know, and its
// tools look for, as it stands there.
func inVLLMsWords(sentence string, args ...any) error { return fmt.Errorf(sentence, args...) }

// gib writes bytes as vLLM does, and small ones so that they can be read.
func gib(n int64) string {
	if n > 0 && n < 1<<27 {
		return fmt.Sprintf("%.2f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
}

// activations is the memory of every value of the program at its most rows.
func (m *Model) activations(l kernels.Limits) int64 {
	rows := map[kernels.Rows]int{kernels.Tokens: l.Tokens, kernels.Sampled: l.Rows, kernels.Seqs: l.Seqs}
	var n int64
	for _, v := range m.values {
		n += 4 * int64(rows[v.Rows]) * int64(v.Width)
	}
	return n
}

// cache is what the sizes of a KV cache follow from.
type cache struct {
	pages   []kernels.KVSpec
	windows []int
	block   int // tokens
	step    int // tokens of a step
	seqs    int
	whole   bool // some group sees all tokens
}

func (m *Model) cache(o PlanOptions) cache {
	c := cache{pages: m.KVGroups(o.BlockTokens, o.KVType), windows: m.config.Windows, block: o.BlockTokens, step: o.Limits.Tokens, seqs: o.Limits.Seqs}
	for i, p := range c.pages {
		c.whole = c.whole || p.StateBytes == 0 && c.windows[i] == 0
	}
	return c
}

// blocks is how many blocks of a group one sequence of n tokens needs: all of
// it, or as much as its window and a step span, or one state.
func (c cache) blocks(group, n int) int {
	if c.pages[group].StateBytes > 0 {
		return 1
	}
	all := (n + c.block - 1) / c.block
	if w := c.windows[group]; w > 0 {
		// The window may begin and end within blocks.
		return min(all, (w+c.step-2)/c.block+2)
	}
	return all
}

// need is the memory of one sequence of n tokens.
func (c cache) need(n int) int64 {
	var bytes int64
	for i, p := range c.pages {
		bytes += p.PageBytes() * int64(c.blocks(i, n))
	}
	return bytes
}

// counts gives each group its blocks when those that see all tokens have n.
// A group with a window needs no more than its window for each sequence, and a
// recurrent one a state for each.
func (c cache) counts(n int) []int {
	counts := make([]int, len(c.pages))
	for i, p := range c.pages {
		counts[i] = n
		if p.StateBytes > 0 {
			counts[i] = c.seqs
		} else if c.windows[i] > 0 && c.whole {
			counts[i] = min(n, c.seqs*c.blocks(i, math.MaxInt32))
		}
	}
	return counts
}

// largest is the most blocks that fit into memory.
func (c cache) largest(memory int64) int {
	const most = 1 << 28
	return sort.Search(most, func(n int) bool {
		var bytes int64
		for i, count := range c.counts(n + 1) {
			bytes += c.pages[i].PageBytes() * int64(count)
		}
		return bytes > memory
	})
}

func (c cache) specs(n int) []kernels.KVSpec {
	specs := append([]kernels.KVSpec(nil), c.pages...)
	for i, count := range c.counts(n) {
		specs[i].Blocks = count
	}
	return specs
}

// concurrency is how many sequences of n tokens fit at once.
func (c cache) concurrency(specs []kernels.KVSpec, n int) float64 {
	least := math.Inf(1)
	for i, s := range specs {
		least = min(least, float64(s.Blocks)/float64(c.blocks(i, n)))
	}
	return least
}

// longest is the longest sequence that fits alone.
func (c cache) longest(memory int64, most int) int {
	return sort.Search(most, func(n int) bool { return c.need(n+1) > memory })
}
