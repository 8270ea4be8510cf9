package launch

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"roundhouse/kernels"
	"roundhouse/worker/kv"
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
}

// planCache fits as many blocks as bytes hold. windows has one entry for each
// group of specs: the tokens that its layers see, 0 for all.
func planCache(o *Options, specs []kernels.KVSpec, windows []int, bytes int64, positions int) (plan, error) {
	p := plan{specs: specs, bytes: bytes}
	perBlock := int64(0) // of the groups that keep every token
	fixed := int64(0)    // of those whose size depends on the sequences alone
	for i := range specs {
		s := &specs[i]
		switch {
		case s.StateBytes > 0:
			s.Blocks = o.MaxSeqs
			fixed += int64(s.Blocks) * s.PageBytes()
		case windows[i] > 0:
			perSeq := (windows[i]+s.BlockTokens-1)/s.BlockTokens + 1
			s.Blocks = o.MaxSeqs*perSeq + (o.MaxBatched+s.BlockTokens-1)/s.BlockTokens + o.MaxSeqs
			fixed += int64(s.Blocks) * s.PageBytes()
		default:
			perBlock += s.PageBytes()
		}
	}
	blocks := o.Blocks
	if blocks == 0 {
		blocks = int(max(0, bytes-fixed) / max(1, perBlock))
	}
	if perBlock == 0 {
		blocks = o.MaxSeqs * ((positions + cpuBlockTokens - 1) / cpuBlockTokens)
	}
	for i := range specs {
		s := &specs[i]
		if s.StateBytes == 0 && windows[i] == 0 {
			s.Blocks = blocks
		}
		if windows[i] > 0 {
			s.Blocks = min(s.Blocks, max(blocks, 1))
		}
		p.groups = append(p.groups, kv.Group{Blocks: s.Blocks, BlockTokens: s.BlockTokens, Window: windows[i], State: s.StateBytes > 0})
	}
	if blocks < 1 {
		return p, fmt.Errorf("No available memory for the cache blocks. Try increasing `gpu_memory_utilization` or VLLM_CPU_KVCACHE_SPACE; %s are set aside and one block takes %s", gib(bytes), gib(perBlock+fixed))
	}
	p.tokens = blocks * specs[0].BlockTokens
	return p, p.length(o, positions, perBlock, specs[0].BlockTokens)
}

// Of models that embed or score: the longest text unless --max-model-len says
// otherwise, and how many steps' texts an account is kept for.
const (
	mostPooledTokens = 8192
	pooledSteps      = 16
)

// planPooled is planCache for a model that reads whole texts and keeps
// nothing from one step to the next. An encoder has no cache; blocks are then
// only the unit in which its load is told.
func planPooled(o *Options, specs []kernels.KVSpec, windows []int, positions int) (plan, error) {
	p := plan{specs: specs, maxModelLen: min(positions, mostPooledTokens)}
	if o.MaxModelLen > positions {
		return p, fmt.Errorf("--max-model-len %d is longer than the %d positions of the model", o.MaxModelLen, positions)
	}
	if o.MaxModelLen > 0 {
		p.maxModelLen = o.MaxModelLen
	}
	o.MaxBatched = max(o.MaxBatched, p.maxModelLen)
	o.PrefixCache = false
	blocks := (o.MaxBatched+o.BlockTokens-1)/o.BlockTokens + o.MaxSeqs
	if len(specs) == 0 {
		blocks *= pooledSteps
		p.groups = []kv.Group{{Blocks: blocks, BlockTokens: o.BlockTokens}}
	}
	for i := range specs {
		specs[i].Blocks = blocks
		p.bytes += int64(blocks) * specs[i].PageBytes()
		p.groups = append(p.groups, kv.Group{Blocks: blocks, BlockTokens: specs[i].BlockTokens, Window: windows[i]})
	}
	p.tokens = blocks * o.BlockTokens
	return p, nil
}

// length settles the longest context.
func (p *plan) length(o *Options, positions int, perBlock int64, blockTokens int) error {
	switch {
	case o.MaxModelLen > positions:
		return fmt.Errorf("--max-model-len %d is longer than the %d positions of the model", o.MaxModelLen, positions)
	case o.MaxModelLen == -1:
		p.maxModelLen = min(positions, p.tokens)
		return nil
	case o.MaxModelLen == 0:
		p.maxModelLen = positions
	default:
		p.maxModelLen = o.MaxModelLen
	}
	if p.maxModelLen <= p.tokens {
		return nil
	}
	need := int64((p.maxModelLen+blockTokens-1)/blockTokens) * perBlock
	return fmt.Errorf("To serve at least one request with the model's max seq len (%d), (%s KV cache is needed, which is larger than the available KV cache memory (%s). Based on the available memory, the estimated maximum model length is %d. Try increasing `gpu_memory_utilization` or VLLM_CPU_KVCACHE_SPACE, or decreasing `max_model_len` when initializing the engine",
		p.maxModelLen, gib(need), gib(p.bytes), p.tokens)
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
