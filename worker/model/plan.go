package model

import (
	"fmt"
	"math"
	"sort"

	"roundhouse/kernels"
)

// PlanOptions say what a model is to be served with.
type PlanOptions struct {
	Memory      int64   // bytes of the device that the worker may plan with; 0: not known, and KV is given
	Utilisation float64 // share of Memory to use; 0: 0.92
	KV          int64   // bytes for the cache; 0: what weights and activations leave
	KVMost      int64   // bytes that the cache takes at most; 0: no bound
	Blocks      int     // of the groups that keep every token; 0: as many as fit
	Format      kernels.Format
	KVType      kernels.DType
	BlockTokens int
	MaxModelLen int            // longest sequence; 0: the model's own; -1: as long as fits
	Aside       int64          // bytes of what is computed with besides: towers
	Beyond      bool           // MaxModelLen may be more than the model was made for
	Limits      kernels.Limits // of a step
}

// Plan is how a model would use memory, known before a weight is read.
type Plan struct {
	Weights     int64 // bytes
	Activations int64 // bytes of a step at its limits
	KV          int64 // bytes for the cache

	KVSpecs     []kernels.KVSpec // for BuildOptions.KV: Blocks is filled in
	Limits      kernels.Limits   // of a step: a model that embeds or scores takes a text in one
	KVTokens    int              // that the cache holds
	MaxModelLen int              // longest sequence that is served
	Longest     int              // longest sequence that the cache could hold, at most what the model was made for
	Concurrency float64          // sequences of MaxModelLen that the cache holds at once
}

// defaultUtilisation is vLLM's gpu_memory_utilization.
const defaultUtilisation = 0.92

// Of models that embed or score: the longest text, unless MaxModelLen says
// otherwise, and of how many steps an encoder's texts are accounted for.
const (
	mostPooledTokens = 8192
	pooledSteps      = 16
)

// Plan divides memory between weights, activations and the KV cache. The plan
// is returned with the error too, as far as it goes; an error says that the
// model cannot be served so, in vLLM's words where vLLM has words for it.
func (m *Model) Plan(o PlanOptions) (Plan, error) {
	if o.Utilisation == 0 {
		o.Utilisation = defaultUtilisation
	}
	most := m.config.MaxPositions
	if o.Beyond && (m.arch.encoder || m.config.Hearing != nil) { // positions that it has no embedding for
		o.MaxModelLen = min(o.MaxModelLen, most)
	} else if o.Beyond {
		most = max(most, o.MaxModelLen)
	}
	p := Plan{MaxModelLen: o.MaxModelLen}
	if o.MaxModelLen == 0 {
		p.MaxModelLen = most
		if m.config.Kind != Generate {
			p.MaxModelLen = min(most, mostPooledTokens)
		}
	}
	if o.MaxModelLen > most || o.MaxModelLen < -1 {
		return p, fmt.Errorf("max_model_len is %d; want 1 to %d, which is what the model was made for; VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 allows more", o.MaxModelLen, most)
	}
	if o.BlockTokens < 1 || o.Limits.Tokens < 1 || o.Limits.Seqs < 1 {
		return p, fmt.Errorf("blocks of %d tokens, steps of %d tokens and %d sequences; want at least 1 of each", o.BlockTokens, o.Limits.Tokens, o.Limits.Seqs)
	}
	if m.config.Kind != Generate {
		if p.MaxModelLen < 0 {
			p.MaxModelLen = most
		}
		o.Limits.Tokens = max(o.Limits.Tokens, p.MaxModelLen)
	}
	p.Limits = o.Limits
	p.Weights, p.Activations = m.memory(o.Format, o.Limits)
	p.Activations += o.Aside
	if err := m.settings.quant.fits(o.Format); err != nil {
		return p, err
	}
	if m.config.Kind != Generate {
		return p, m.planTexts(&p, o)
	}
	return p, m.planCache(&p, o)
}

// usable is what of the memory may be taken.
func (o *PlanOptions) usable() int64 { return int64(float64(o.Memory) * o.Utilisation) }

// planCache plans the cache of a model that generates.
func (m *Model) planCache(p *Plan, o PlanOptions) error {
	p.KV = o.KV
	if p.KV == 0 {
		p.KV = max(o.usable()-p.Weights-p.Activations, 0)
	}
	if o.KVMost > 0 {
		p.KV = min(p.KV, o.KVMost)
	}
	c := m.cache(o)
	n := o.Blocks
	if n == 0 {
		n = c.largest(p.KV)
	}
	if n == 0 {
		if o.Memory == 0 {
			return inVLLMsWords("No available memory for the cache blocks. Try increasing `gpu_memory_utilization` or VLLM_CPU_KVCACHE_SPACE; %s are set aside and one block takes %s", gib(p.KV), gib(c.bytes(1)))
		}
		return inVLLMsWords("No available memory for the cache blocks. Weights take %s and activations %s of %s. Try increasing `gpu_memory_utilization` when initializing the engine, or a smaller quantization",
			gib(p.Weights), gib(p.Activations), gib(o.usable()))
	}
	p.KVSpecs = c.specs(n)
	most := m.config.MaxPositions
	if o.Beyond {
		most = max(most, o.MaxModelLen)
	}
	p.Longest = c.most(p.KVSpecs, most)
	if p.MaxModelLen < 0 {
		p.MaxModelLen = p.Longest
	}
	p.Concurrency = c.concurrency(p.KVSpecs, p.MaxModelLen)
	p.KVTokens = n * o.BlockTokens
	if !c.whole { // no group keeps every token, so that blocks bound no sequence
		p.KVTokens = int(p.Concurrency * float64(p.MaxModelLen))
	}
	if p.MaxModelLen > p.Longest {
		return inVLLMsWords("To serve at least one request with the model's max seq len (%d), (%s KV cache is needed, which is larger than the available KV cache memory (%s). Based on the available memory, the estimated maximum model length is %d. Try increasing `gpu_memory_utilization` or VLLM_CPU_KVCACHE_SPACE, or decreasing `max_model_len` when initializing the engine",
			p.MaxModelLen, gib(c.need(p.MaxModelLen)), gib(p.KV), p.Longest)
	}
	return nil
}

// planTexts plans a model that reads whole texts and keeps nothing from one
// step to the next. An encoder has no cache at all; its tokens are then only
// the unit in which its load is told.
func (m *Model) planTexts(p *Plan, o PlanOptions) error {
	blocks := (o.Limits.Tokens+o.BlockTokens-1)/o.BlockTokens + o.Limits.Seqs
	p.KVSpecs = m.KVGroups(o.BlockTokens, o.KVType)
	for i := range p.KVSpecs {
		p.KVSpecs[i].Blocks = blocks
		p.KV += int64(blocks) * p.KVSpecs[i].PageBytes()
	}
	if len(p.KVSpecs) == 0 {
		blocks *= pooledSteps
	}
	p.KVTokens, p.Longest = blocks*o.BlockTokens, m.config.MaxPositions
	p.Concurrency = float64(p.KVTokens) / float64(p.MaxModelLen)
	if need := p.Weights + p.Activations + p.KV; o.Memory > 0 && need > o.usable() {
		return inVLLMsWords("No available memory for the cache blocks. Weights take %s, activations %s and the keys and values of a step %s of %s. Try increasing `gpu_memory_utilization` when initializing the engine, a smaller quantization, or a smaller `max_model_len`",
			gib(p.Weights), gib(p.Activations), gib(p.KV), gib(o.usable()))
	}
	return nil
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

// cache is what the sizes of a KV cache follow from.
type cache struct {
	pages   []kernels.KVSpec
	windows []int
	block   int // tokens
	step    int // tokens of a step
	seqs    int
	whole   bool // some group sees all tokens
	longest int  // tokens of a sequence that the model was made for
}

func (m *Model) cache(o PlanOptions) cache {
	c := cache{pages: m.KVGroups(o.BlockTokens, o.KVType), windows: m.config.Windows, block: o.BlockTokens, step: o.Limits.Tokens, seqs: o.Limits.Seqs, longest: m.config.MaxPositions}
	for i, p := range c.pages {
		c.whole = c.whole || !p.Single() && c.windows[i] == 0
	}
	return c
}

// blocks is how many blocks of a group one sequence of n tokens needs: all of
// it, or as much as its window and a step span, or one state.
func (c cache) blocks(group, n int) int {
	if c.pages[group].Single() {
		return 1
	}
	all := c.up(n)
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
// A group with a window needs its window for each sequence, and a step's tokens
// once; a recurrent one a state for each; one of what was heard as many as there
// are longest sequences.
func (c cache) counts(n int) []int {
	counts := make([]int, len(c.pages))
	for i, p := range c.pages {
		counts[i] = n
		if p.Cross {
			counts[i] = min(c.seqs, max(1, n/c.up(c.longest)))
		} else if p.StateBytes > 0 {
			counts[i] = c.seqs
		} else if w := c.windows[i]; w > 0 {
			counts[i] = min(n, c.seqs*c.seen(w)+c.up(c.step))
		}
	}
	return counts
}

// up is the blocks of n tokens.
func (c cache) up(n int) int { return (n + c.block - 1) / c.block }

// seen is the most blocks that a window of w tokens and the next token lie in.
func (c cache) seen(w int) int { return c.up(w) + 2 }

// bytes is the memory of the cache when the groups that see all have n blocks.
func (c cache) bytes(n int) int64 {
	var bytes int64
	for i, count := range c.counts(n) {
		bytes += c.pages[i].PageBytes() * int64(count)
	}
	return bytes
}

// largest is the most blocks that fit into memory. A cache whose groups all
// have windows or states has as many as its sequences could use.
func (c cache) largest(memory int64) int {
	const most = 1 << 28
	n := sort.Search(most, func(n int) bool { return c.bytes(n+1) > memory })
	if n == most && !c.whole {
		n = 0
		for i, p := range c.pages {
			if !p.Single() {
				n = max(n, c.counts(most)[i])
			}
		}
		n = max(n, 1)
	}
	return n
}

func (c cache) specs(n int) []kernels.KVSpec {
	specs := append([]kernels.KVSpec(nil), c.pages...)
	for i, count := range c.counts(n) {
		specs[i].Blocks = count
	}
	return specs
}

// concurrency is how many sequences of n tokens fit at once. Of a group with a
// window, what a step adds is counted once.
func (c cache) concurrency(specs []kernels.KVSpec, n int) float64 {
	least := math.Inf(1)
	for i, s := range specs {
		each := c.blocks(i, n)
		if w := c.windows[i]; w > 0 && !s.Single() {
			each = min(each, c.seen(w))
		}
		least = min(least, float64(s.Blocks)/float64(max(each, 1)))
	}
	return least
}

// most is the longest sequence that the cache holds, of at most so many tokens.
func (c cache) most(specs []kernels.KVSpec, most int) int {
	return sort.Search(most, func(n int) bool {
		for i, s := range specs {
			if c.blocks(i, n+1) > s.Blocks {
				return true
			}
		}
		return false
	})
}
