package launch

import (
	"fmt"
	"slices"
	"strconv"

	"roundhouse/kernels"
	"roundhouse/worker/device"
	"roundhouse/worker/kv"
	"roundhouse/worker/model"
)

// Defaults of the cache on a CPU.
const (
	cpuBlockTokens = 32
	mostCPUBytes   = 4 << 30
	demoBytes      = 256 << 20
)

// plan is how the memory for keys and values is used.
type plan struct {
	specs       []kernels.KVSpec
	groups      []kv.Group
	maxModelLen int
	tokens      int
	bytes       int64
	total       int64 // of memory, with weights and a step
	concurrency float64
}

// cachePlan asks the model how it would use the memory that there is: that of a
// device, or as much of the machine's as there is room for.
func cachePlan(o *Options, m *model.Model, be kernels.Backend, room device.Room) (plan, error) {
	if d, ok := be.(kernels.Growing); ok {
		return planOf(o, m, division{memory: d.Free()})
	}
	if room.Bytes == 0 {
		return planOf(o, m, division{pages: mostCPUBytes / 4})
	}
	usable := room.Bytes - spare(room.Bytes)
	p, err := planOf(o, m, division{memory: usable, most: min(mostCPUBytes, room.Bytes/4)})
	switch {
	case err != nil:
		return p, fmt.Errorf("%w (%s leaves %s)", err, room.Limit, gib(room.Bytes))
	case p.total > usable:
		return p, fmt.Errorf("weights, a step and the KV cache take %s, and %s leaves %s: less is to be asked of --kv-cache-memory-bytes, --num-gpu-blocks-override, --max-model-len or --max-num-batched-tokens, or the weights are to be smaller by --quantization", gib(p.total), room.Limit, gib(room.Bytes))
	}
	return p, nil
}

// division is what there is for pages where the flags do not say: what the rest
// leaves of a memory, at most so much, or so many bytes.
type division struct{ memory, most, pages int64 }

// planOf is cachePlan for a division.
func planOf(o *Options, m *model.Model, d division) (plan, error) {
	if o.BlockTokens == 0 {
		o.BlockTokens = cpuBlockTokens
	}
	want := model.PlanOptions{KV: o.KVBytes, Blocks: o.Blocks, Format: format(o), KVType: kvType(o), BlockTokens: o.BlockTokens, MaxModelLen: o.MaxModelLen, Beyond: o.BeyondModel, Aside: o.Sight.aside(m),
		Limits: o.limits(m.Config())}
	if o.KVBytes == 0 {
		want.KV, want.KVMost = d.pages, d.most
		if o.Model == "" && (d.most == 0 || d.most > demoBytes) {
			want.KVMost = demoBytes
		}
	}
	want.Memory, want.Utilisation = d.memory, 1 // its share is taken already
	got, err := m.Plan(want)
	if err != nil {
		return plan{}, err
	}
	cfg := m.Config()
	if cfg.Kind != model.Generate {
		o.PrefixCache = false
	}
	o.MaxBatched = got.Limits.Tokens
	p := plan{specs: got.KVSpecs, maxModelLen: got.MaxModelLen, tokens: got.KVTokens, bytes: got.KV, concurrency: got.Concurrency}
	p.total = got.Weights + got.Activations
	for i, s := range p.specs {
		p.total += int64(s.Blocks) * s.PageBytes()
		p.groups = append(p.groups, kv.Group{Blocks: s.Blocks, BlockTokens: s.BlockTokens, Window: cfg.Windows[i], State: s.Single()})
	}
	if len(p.groups) == 0 {
		p.groups = []kv.Group{{Blocks: p.tokens / o.BlockTokens, BlockTokens: o.BlockTokens}}
	}
	return p, nil
}

// limits bound a step. Of a model that hears, one sequence begins in a step: the
// keys and values of what it heard are made then.
func (o *Options) limits(cfg model.Config) kernels.Limits {
	l := kernels.Limits{Tokens: o.MaxBatched, Seqs: o.MaxSeqs, Rows: o.MaxSeqs}
	if h := cfg.Hearing; h != nil {
		l.Frames = h.Rows
	}
	return l
}

// context is the longest sequence that a step may meet, whatever is planned yet.
func (p *plan) context(o *Options, cfg model.Config) int {
	if o.MaxModelLen > 0 {
		return max(o.MaxModelLen, p.maxModelLen)
	}
	return max(cfg.MaxPositions, p.maxModelLen)
}

// small is the pages before it is known how much memory there is for them: as few
// as can be, but for states, whose number does not depend on it.
func (p *plan) small() []kernels.KVSpec {
	specs := slices.Clone(p.specs)
	for i := range specs {
		if !specs[i].Single() {
			specs[i].Blocks = 1
		}
	}
	return specs
}

// Room that stays free, for what a step may want beyond what is set
// aside: of its memory, within bounds.
const (
	spareShare = 64
	leastSpare = 2 << 20
	mostSpare  = 64 << 20
)

func spare(free int64) int64 { return max(leastSpare, min(free/spareShare, mostSpare)) }

// grow gives the pages what weights and programs have left, where the flags do
// not say how many they are.
func (m *memory) grow(p plan, md *model.Model) (plan, error) {
	be, ok := m.backend.(kernels.Growing)
	if !ok || !m.o.autoPages(md) {
		return p, nil
	}
	free := be.Free()
	for _, kv := range m.pages {
		free += kv.Bytes()
	}
	p, err := planOf(&m.o, md, division{pages: free - spare(free)})
	if err != nil {
		return p, err
	}
	for i, kv := range m.pages {
		if err := be.Grow(kv, p.specs[i].Blocks); err != nil {
			return p, err
		}
	}
	m.specs = p.specs
	return p, nil
}

// autoPages reports whether the cache takes the memory that there is.
func (o *Options) autoPages(m *model.Model) bool {
	return o.KVBytes == 0 && o.Blocks == 0 && m.Config().Kind == model.Generate
}

func gib(n int64) string { return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30)) }

// commas writes n as 114,432.
func commas(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
