package launch

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"roundhouse/kernels"
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
	concurrency float64
}

// cachePlan asks the model how it would use the memory that there is.
func cachePlan(o *Options, m *model.Model, be kernels.Backend) (plan, error) {
	var memory, pages int64
	if d, ok := be.(kernels.Growing); ok {
		memory = d.Free()
	} else {
		pages = min(mostCPUBytes, availableBytes()/4)
	}
	return planOf(o, m, memory, pages)
}

// planOf is cachePlan for a memory that is to be divided, or for pages of so many
// bytes where the flags say nothing else.
func planOf(o *Options, m *model.Model, memory, pages int64) (plan, error) {
	if o.BlockTokens == 0 {
		o.BlockTokens = cpuBlockTokens
	}
	want := model.PlanOptions{KV: o.KVBytes, Blocks: o.Blocks, Format: format(o), KVType: kvType(o), BlockTokens: o.BlockTokens, MaxModelLen: o.MaxModelLen, Beyond: o.BeyondModel,
		Limits: kernels.Limits{Tokens: o.MaxBatched, Seqs: o.MaxSeqs, Rows: o.MaxSeqs}}
	if o.Model == "" && o.KVBytes == 0 {
		want.KVMost = demoBytes
	}
	want.Memory, want.Utilisation = memory, 1 // its share is taken already
	if want.KV == 0 {
		want.KV = pages
	}
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
	for i, s := range p.specs {
		p.groups = append(p.groups, kv.Group{Blocks: s.Blocks, BlockTokens: s.BlockTokens, Window: cfg.Windows[i], State: s.StateBytes > 0})
	}
	if len(p.groups) == 0 {
		p.groups = []kv.Group{{Blocks: p.tokens / o.BlockTokens, BlockTokens: o.BlockTokens}}
	}
	return p, nil
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
		if specs[i].StateBytes == 0 {
			specs[i].Blocks = 1
		}
	}
	return specs
}

// Room that stays free on a device, for what a step may want beyond what is set
// aside: of its memory, within bounds.
const (
	spareShare = 64
	leastSpare = 2 << 20
	mostSpare  = 64 << 20
)

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
	p, err := planOf(&m.o, md, 0, free-max(leastSpare, min(free/spareShare, mostSpare)))
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

// availableBytes is the memory that the machine could give now.
func availableBytes() int64 {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return mostCPUBytes
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err == nil {
				return kb << 10
			}
		}
	}
	return mostCPUBytes
}

// commas writes n as 114,432.
func commas(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
