package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"roundhouse/kernels"
	"roundhouse/worker/weights"
)

// Model is a model's folder, read as far as possible without its weights.
type Model struct {
	settings *settings
	arch     architecture
	config   Config
	set      *weights.Set
	groups   []group
	read     int64 // bytes of files that Build reads
	wideHead bool  // see WideHead
	room     AdapterRoom
	fine     bool // see FineGroups
	unread   []string
}

// Open reads a model's folder, or one GGUF file, and maps the weight files. It
// fails if the architecture is not in the table, or a weight is missing or
// misshaped.
func Open(dir string) (*Model, error) {
	if isGGUF(dir) {
		return OpenGGUF(dir)
	}
	m, err := open(os.DirFS(dir), nil, func() (*weights.Set, error) { return weights.Open(dir) })
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", dir, err)
	}
	return m, nil
}

// OpenFS is Open for a model that lies at the root of fsys.
func OpenFS(fsys fs.FS) (*Model, error) {
	return open(fsys, nil, func() (*weights.Set, error) { return weights.OpenFS(fsys) })
}

// isGGUF reports whether a path is a GGUF file, by its name.
func isGGUF(path string) bool {
	info, err := os.Stat(path)
	return filepath.Ext(path) == ".gguf" && (err != nil || !info.IsDir())
}

func open(fsys fs.FS, over Overrides, openWeights func() (*weights.Set, error)) (*Model, error) {
	s, arch, err := readSettings(fsys, over)
	if err != nil {
		return nil, err
	}
	m := &Model{settings: s, arch: arch, groups: arch.groups(s)}
	m.config = s.config(arch, m.groups)
	if err := m.config.generation(fsys); err != nil {
		return nil, err
	}
	if h := m.config.Hearing; h != nil {
		if err := h.generation(fsys, m.config.Vocab); err != nil {
			return nil, err
		}
	}
	if m.set, err = openWeights(); err != nil {
		return nil, err
	}
	if err := m.dryRun(); err != nil {
		_ = m.set.Close() // the faults matter more
		return nil, err
	}
	return m, nil
}

// dryRun records the program with no backend, and returns all that is wrong.
func (m *Model) dryRun() error {
	b := m.count(kernels.FormatBF16)
	asked := map[string]bool{}
	b.asked = func(p piece) { asked[b.stored(p.name)] = true }
	g := newGraph(m.settings, b, m.groups, nil)
	m.record(g)
	m.read = b.read
	if err := openFaults(g); err != nil {
		return err
	}
	m.unread = unread(g, m.set.Names(), asked)
	return quantisedSomewhere(g, asked)
}

// Unread are the names of weights that nothing reads, though they belong to what
// is served: the model may be another than its config.json says.
func (m *Model) Unread() []string { return m.unread }

// unread leaves out what transformers passes over as well: tables that follow from
// the settings, and the parts of a model for images, for several tokens at once
// and, where it embeds, for generation.
func unread(g *graph, names []string, asked map[string]bool) []string {
	var list []string
	for _, name := range names {
		known := asked[name] || strings.HasSuffix(name, ".inv_freq") || strings.HasSuffix(name, ".position_ids") || strings.HasPrefix(name, "mtp.") ||
			g.seeing && g.eyes == nil && !strings.HasPrefix(name, g.root()) || g.pooling != nil && (strings.HasPrefix(name, "lm_head.") || strings.Contains(name, "pooler."))
		if !known {
			list = append(list, name)
		}
	}
	return list
}

// quantisedSomewhere refuses a quantization_config that no weight follows.
func quantisedSomewhere(g *graph, asked map[string]bool) error {
	if g.settings.quant == nil {
		return nil
	}
	for name := range asked {
		if t := g.set.Lookup(name); t != nil && !slices.Contains(floats, t.Type) {
			return nil
		}
	}
	return fmt.Errorf("config.json: quantization_config names %s, and all weights are stored as floats; remove it, or the weights are another checkpoint's", g.settings.quant.method)
}

// openFaults is one error for everything that is wrong with a model.
func openFaults(g *graph) error {
	if len(g.faults) > 0 {
		slices.Sort(g.faults) // each layer has told of the same
		return fmt.Errorf("config.json: %s", strings.Join(slices.Compact(g.faults), "; "))
	}
	n := g.faulty
	if n == 0 {
		return nil
	}
	list := g.missing
	if n > len(list) {
		list = append(slices.Clip(list), fmt.Sprintf("and %d more", n-len(list)))
	}
	return fmt.Errorf("%d weights are not as config.json says:\n  %s", n, strings.Join(list, "\n  "))
}

// kvGroups puts layers with the same window together, and those with a state
// instead of pages, in the order of the first layer of each.
func kvGroups(s *settings) []group {
	var groups []group
	for layer := range s.Layers {
		w, state := s.window(layer), 0
		if s.layerType(layer) == linearAttention {
			w, state = 0, max(s.deltaNet().stateBytes(), 1)
		}
		i := slices.IndexFunc(groups, func(g group) bool { return g.window == w && g.spec.StateBytes == state })
		if i < 0 {
			i = len(groups)
			spec := kernels.KVSpec{StateBytes: state}
			switch {
			case state > 0:
			case s.KVRank > 0:
				spec.Heads, spec.KeyDim = 1, s.mla().key()
			default:
				spec.Heads, spec.KeyDim, spec.ValueDim = s.KVHeads, s.HeadDim, s.HeadDim
			}
			groups = append(groups, group{window: w, spec: spec})
		}
		groups[i].layers = append(groups[i].layers, layer)
		groups[i].spec.Layers++
	}
	return groups
}

// Config is what is known without the weights.
func (m *Model) Config() Config { return m.config }

// KVGroups describes the KV cache, one entry a group of layers. Blocks is 0:
// how many there are is for who plans the memory.
func (m *Model) KVGroups(blockTokens int, t kernels.DType) []kernels.KVSpec {
	specs := make([]kernels.KVSpec, len(m.groups))
	for i, g := range m.groups {
		specs[i] = g.spec
		specs[i].Type = t
		if !g.spec.Cross {
			specs[i].BlockTokens = blockTokens
		}
		if g.spec.StateBytes > 0 {
			specs[i].Type = kernels.F32
		}
	}
	return specs
}

// WideHead has the head keep 16 bits in every format. It is to be called before
// anything that takes a format.
func (m *Model) WideHead() { m.wideHead = true }

// FineGroups has four-bit codes whose scales are for 32 or 64 columns, GGUF's
// Q4_0 among them, stay as they are, for a backend that has kernels for them. It is to be called when
// WideHead is.
func (m *Model) FineGroups() { m.fine = true }

// HeadFormat is how the head is kept, which is the embedding as well where the
// two are tied: int8 where the linears are quantised, or a GGUF file has it as
// blocks.
func (m *Model) HeadFormat(format kernels.Format) kernels.Format {
	b := m.count(format)
	g := newGraph(m.settings, b, m.groups, nil)
	return b.headFormat(b.lookup(g.headName()))
}

// Stamp says what the weights of a format are made of: the files and their
// headers, the settings, and this format. ok is false where there are no files.
func (m *Model) Stamp(format kernels.Format) (stamp string, ok bool) {
	files, ok := m.set.Stamp()
	if !ok {
		return "", false
	}
	settings, err := json.Marshal(m.settings)
	if err != nil {
		return "", false
	}
	h := sha256.Sum256(fmt.Appendf(settings, "%s %s %v %v", files, format, m.wideHead, m.fine))
	return hex.EncodeToString(h[:]), true
}

// WeightBytes is the memory that the weights take in a format.
func (m *Model) WeightBytes(format kernels.Format) int64 {
	n, _ := m.memory(format, kernels.Limits{})
	return n
}

// memory is what the weights take in a format, and a step at its limits.
func (m *Model) memory(format kernels.Format, l kernels.Limits) (weights, step int64) {
	b := m.count(format)
	g := newGraph(m.settings, b, m.groups, nil)
	m.record(g)
	return b.bytes, activations(g.prog, l)
}

// record records the program, and what sees, which has no slices if the model has
// faults.
func (m *Model) record(g *graph) *tower {
	m.arch.record(g)
	if m.arch.tower == nil {
		return &tower{}
	}
	return m.arch.tower(g)
}

// TowerBytes is the memory of a step of what sees, of pictures of at most so many
// patches; it is beside that of the text's step.
func (m *Model) TowerBytes(patches int) int64 {
	g := newGraph(m.settings, m.count(kernels.FormatBF16), m.groups, nil)
	var most int64
	t := m.record(g)
	for _, s := range t.slices {
		most = max(most, activations(s.Program, m.TowerLimits(patches, s)))
	}
	return most + t.places.bytes()
}

// TowerLimits bound a step of a slice: of pictures of at most so many patches, or of
// a sound.
func (m *Model) TowerLimits(patches int, s Slice) kernels.Limits {
	if h := m.config.Hearing; h != nil {
		return h.Limits()
	}
	return m.config.Vision.Limits(patches, s)
}

// count is a binder that loads nothing.
func (m *Model) count(format kernels.Format) *binder {
	if format == kernels.FormatGPTQ || format == kernels.FormatAWQ || format == kernels.FormatMXFP4 {
		format = kernels.FormatBF16 // of what the checkpoint does not have in its own format
	}
	return &binder{set: m.set, format: format, wideHead: m.wideHead, room: m.room, fine: m.fine, quant: m.settings.quant, gguf: m.settings.gguf, bound: map[string]kernels.Weight{}}
}

// BuildOptions say how a model is to be loaded.
type BuildOptions struct {
	Format kernels.Format   // of the linears; embeddings keep 16 bits, norms and routers 32, the head see HeadFormat
	KV     []kernels.KVSpec // KVGroups with Blocks filled in

	// Progress, unless nil, is told of every weight: bytes of the files read
	// so far, and in all.
	Progress func(done, total int64)

	// Stop, unless nil, is asked after every weight; its error ends the build.
	Stop func() error
}

// Built is a model in a backend.
type Built struct {
	Program *kernels.Program
	KV      []kernels.KV // one a group

	Tower    []Slice   // of what sees, in their order; nil: it sees nothing
	Places   *Places   // what the tower reads beside patches; nil: nothing
	Adapters *Adapters // nil: no room was made for any
}

// Build loads the weights into be and records the program. Whatever it made
// before an error is be's to give back, in Close.
func (m *Model) Build(be kernels.Backend, o BuildOptions) (*Built, error) {
	if len(o.KV) != len(m.groups) {
		return nil, fmt.Errorf("BuildOptions.KV has %d groups; the model has %d", len(o.KV), len(m.groups))
	}
	if err := m.settings.quant.fits(o.Format); err != nil {
		return nil, err
	}
	built := &Built{}
	for i, spec := range o.KV {
		kv, err := be.KV(spec)
		if err != nil {
			return nil, fmt.Errorf("KV group %d: %w", i, err)
		}
		built.KV = append(built.KV, kv)
	}
	b := m.count(o.Format)
	b.be, b.progress, b.stop, b.total = be, o.Progress, o.Stop, m.read
	g := newGraph(m.settings, b, m.groups, built.KV)
	t := m.record(g)
	built.Tower, built.Places = t.slices, t.places
	if b.err != nil {
		return nil, b.err
	}
	if err := m.set.Unchanged(); err != nil {
		return nil, err
	}
	built.Program = g.prog
	if m.room.Slots > 0 {
		built.Adapters = &Adapters{room: m.room, modules: g.adapted}
	}
	return built, nil
}

// Close unmaps the weight files. What Build returned does not need them.
func (m *Model) Close() error { return m.set.Close() }
