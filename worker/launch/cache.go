package launch

import (
	"fmt"
	"os"
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
	if o.BlockTokens == 0 {
		o.BlockTokens = cpuBlockTokens
	}
	want := model.PlanOptions{KV: o.KVBytes, Blocks: o.Blocks, Format: format(o), KVType: kvType(o), BlockTokens: o.BlockTokens, MaxModelLen: o.MaxModelLen, Beyond: o.BeyondModel,
		Limits: kernels.Limits{Tokens: o.MaxBatched, Seqs: o.MaxSeqs, Rows: o.MaxSeqs}}
	if o.Model == "" && o.KVBytes == 0 {
		want.KVMost = demoBytes
	}
	if d, ok := be.(interface{ Free() int64 }); ok {
		want.Memory, want.Utilisation = d.Free(), 1 // its share is taken already
	} else if want.KV == 0 {
		want.KV = min(mostCPUBytes, availableBytes()/4)
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
