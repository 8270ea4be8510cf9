package cpu

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"roundhouse/kernels"
)

// Options are the choices of who runs the backend. The zero value takes all
// processors that the process may use, and the best instruction set.
type Options struct {
	// Threads that compute, the caller of Run among them. 0: one for each
	// processor of CPUs, or else as many as GOMAXPROCS says.
	//
	// A process that does other work beside should set GOMAXPROCS to at least
	// Threads+1, or its other goroutines wait while kernels run.
	Threads int

	// ISA is one of ISAs; empty takes the best that the machine has.
	ISA string

	// CPUs ties thread i to processor CPUs[i]; the caller of Run, thread 0,
	// stays where its process may run, unless CPUs are of several nodes: then it
	// is on CPUs[0] while it runs. Empty: none is tied.
	CPUs []int

	// Nodes is the memory node of each of CPUs; nil: all are of one. Threads of
	// one node then have neighbouring outputs, and read what they packed.
	Nodes []int

	// Cache, if its Path is not empty, keeps packed weights in a file.
	Cache Cache
}

// Backend computes on host processors.
type Backend struct {
	team    *team
	isa     *isa
	weights arena
	pages   arena
	plans   arena  // buffers of executables
	shared  []byte // of them, what executables with Limits.Shared have
	cache   *cache
	writing chan error    // of the cache file that is being made; nil: none is
	stop    chan struct{} // closed to end that
	closed  bool
	// shareAll is for tests: no step is too small for all threads.
	shareAll bool
	nodes    bool // the threads are on several memory nodes
}

// New starts the threads.
func New(o Options) (*Backend, error) {
	l, err := findISA(o.ISA)
	if err != nil {
		return nil, err
	}
	threads := o.Threads
	if threads == 0 {
		threads = len(o.CPUs)
	}
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	if threads < 0 || threads > 1024 {
		return nil, fmt.Errorf("%d threads; want 1 to 1024", threads)
	}
	b := &Backend{isa: l}
	if o.Cache.Path != "" {
		if b.cache, err = openCache(o.Cache); err != nil {
			return nil, err
		}
	}
	var cpus []int
	cpus, b.nodes = byNode(o.CPUs, o.Nodes)
	b.team = newTeam(threads, cpus, b.nodes)
	return b, nil
}

// Cached reports whether the weights come from the cache file, so that the source
// need not be read.
func (b *Backend) Cached() bool { return b.cache != nil && b.cache.mapping != nil }

// Kept implements kernels.Keeper: it finds weights in the cache file.
func (b *Backend) Kept(src kernels.Source, format kernels.Format) kernels.Weight {
	if b.cache == nil {
		return nil
	}
	if w := b.cache.find(src, format); w != nil {
		return w
	}
	return nil
}

// Loaded is to be called once all weights are there. If there is a cache file
// to be made, that is done beside everything else, and finished is told how it
// ended, from another goroutine; an error means that the next start has to pack
// again, no more. Weights that are added later are not in the file.
func (b *Backend) Loaded(finished func(error)) {
	if b.cache == nil || b.cache.mapping != nil || b.writing != nil || b.closed {
		return
	}
	b.writing, b.stop = make(chan error, 1), make(chan struct{})
	go func() {
		err := b.cache.write(b.stop)
		if !errors.Is(err, errStopped) {
			finished(err)
		}
		b.writing <- err
	}()
}

// ISAs is the instruction sets that this machine has, the best first.
func ISAs() []string {
	var names []string
	for _, l := range isas() {
		names = append(names, l.name)
	}
	return names
}

func findISA(name string) (*isa, error) {
	all := isas()
	i := slices.IndexFunc(all, func(l *isa) bool { return name == "" || l.name == name })
	if i < 0 {
		return nil, fmt.Errorf("no instruction set %q here; this machine has %s", name, strings.Join(ISAs(), ", "))
	}
	return all[i], nil
}

// Name implements kernels.Backend.
func (b *Backend) Name() string {
	plural := "s"
	if b.team.threads == 1 {
		plural = ""
	}
	return fmt.Sprintf("cpu %s, %d thread%s", b.isa.name, b.team.threads, plural)
}

// Bytes is the memory that the backend keeps: weights, pages and buffers.
func (b *Backend) Bytes() int64 { return b.weights.size + b.pages.size + b.plans.size }

// Close implements kernels.Backend. Weights, pages and executables are gone
// with it.
func (b *Backend) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	if b.writing != nil {
		close(b.stop)
		<-b.writing // it reads the weights
	}
	b.team.close()
	err := b.weights.close()
	if b.cache != nil {
		if e := b.cache.close(); err == nil {
			err = e
		}
	}
	for _, a := range []*arena{&b.pages, &b.plans} {
		if e := a.close(); err == nil {
			err = e
		}
	}
	return err
}

// kv is the pages of a group of layers. A layer's page is, head by head, keys
// with the tokens side by side, (KeyDim, stride), then values token by token,
// (BlockTokens, ValueDim). The stride is BlockTokens rounded up to 16. Int8 has
// a float32 scale for each token behind them: of the keys (stride), then of the
// values (BlockTokens).
type kv struct {
	spec      kernels.KVSpec
	scales    int // where those of a head begin; 0: it has none
	stride    int // tokens from one row of keys to the next
	elem      int // bytes of a number
	keyBytes  int // of one head's keys
	headBytes int // of one head's keys and values
	pageBytes int
	data      []byte    // (Layers, Blocks, pageBytes)
	state     []float32 // (Layers, Blocks, StateBytes/4)
}

// KV implements kernels.Backend.
func (b *Backend) KV(spec kernels.KVSpec) (kernels.KV, error) {
	if spec.Layers < 1 || spec.Blocks < 1 {
		return nil, fmt.Errorf("pages of %d layers and %d blocks", spec.Layers, spec.Blocks)
	}
	c := &kv{spec: spec}
	var err error
	if spec.StateBytes > 0 {
		c.state, err = of[float32](&b.pages, spec.Layers*spec.Blocks*(spec.StateBytes/4))
		return c, err
	}
	if spec.Type != kernels.F32 && spec.Type != kernels.BF16 && spec.Type != kernels.F8E4M3 && spec.Type != kernels.Int8 {
		return nil, fmt.Errorf("pages of %v; this backend has float32, bfloat16, fp8_e4m3 and int8", spec.Type)
	}
	if spec.BlockTokens < 1 || spec.Heads < 1 || spec.KeyDim < 1 || spec.ValueDim < 0 {
		return nil, fmt.Errorf("pages of %d tokens, %d heads, %d and %d columns", spec.BlockTokens, spec.Heads, spec.KeyDim, spec.ValueDim)
	}
	c = newKV(spec)
	c.data, err = b.pages.bytes(spec.Layers * spec.Blocks * c.pageBytes)
	if err != nil {
		return nil, fmt.Errorf("KV cache of %d pages: %w", spec.Blocks, err)
	}
	return c, nil
}

// newKV lays pages out, without their memory.
func newKV(spec kernels.KVSpec) *kv {
	c := &kv{spec: spec, stride: (spec.BlockTokens + 15) &^ 15, elem: spec.Type.Size()}
	c.keyBytes = c.stride * spec.KeyDim * c.elem
	c.headBytes = (c.keyBytes + spec.BlockTokens*spec.ValueDim*c.elem + 63) &^ 63
	if spec.Type == kernels.Int8 {
		c.scales = c.headBytes
		c.headBytes = (c.scales + 4*c.stride + 4*spec.BlockTokens + 63) &^ 63
	}
	c.pageBytes = c.headBytes * spec.Heads
	return c
}

func (c *kv) Spec() kernels.KVSpec { return c.spec }
func (c *kv) Bytes() int64         { return int64(len(c.data)) + 4*int64(len(c.state)) }

// head is the keys and values of one head of a block.
func (c *kv) head(layer int, block int32, head int) []byte {
	at := (layer*c.spec.Blocks+int(block))*c.pageBytes + head*c.headBytes
	return c.data[at : at+c.headBytes]
}
