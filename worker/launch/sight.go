package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"roundhouse/kernels"
	"roundhouse/worker"
	"roundhouse/worker/media"
	"roundhouse/worker/model"
	"roundhouse/worker/server"
	"roundhouse/worker/weights"
)

// Sight is what flags say of pictures, and what follows from it for a model.
type Sight struct {
	Most      *int     // pictures of one prompt; nil: mostPictures
	TextAlone bool     // --language-model-only
	Folder    string   // --allowed-local-media-path
	Domains   []string // --allowed-media-domains
	Processor []byte   // --mm-processor-kwargs: fields over preprocessor_config.json
	CacheGB   float64  // of rows; 0: as leastRows says
	Pixels    media.Limits

	Sounds hearing // what flags say of sound

	processor *media.Processor // nil: the model sees nothing
	patches   int              // of the greatest picture
	budget    int64            // bytes of rows that are kept
}

// mostPictures is vLLM's bound of pictures where the flag says none.
const mostPictures = 999

// leastRows is the budget of rows where no flag gives it: these bytes, or twice
// the greatest picture.
const leastRows = 256 << 20

// read makes ready what sees, if the model does and it is wanted.
func (s *Sight) read(o *Options, name string, folder fs.FS, cfg model.Config) error {
	if cfg.Hearing != nil {
		return s.Sounds.read(o, name, folder, cfg.Hearing)
	}
	v := cfg.Vision
	if v == nil || s.TextAlone || s.most() == 0 {
		return nil
	}
	config, err := processorConfig(folder)
	if err != nil {
		return fmt.Errorf("%s: %w; --language-model-only serves its text without", name, err)
	}
	if s.processor, err = media.NewProcessor(config, s.Processor); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p := s.processor
	if p.Patch() != v.Patch || p.Merge() != v.Merge || p.Width() != v.Pixels {
		return fmt.Errorf("%s: preprocessor_config.json has patches of %d pixels, %d numbers each, merged by %d, and vision_config in config.json %d, %d and %d",
			name, p.Patch(), p.Width(), p.Merge(), v.Patch, v.Pixels, v.Merge)
	}
	rows := min(p.MostRows(), cfg.MaxPositions)
	if o.MaxModelLen > 0 {
		rows = min(rows, o.MaxModelLen)
	}
	s.patches = rows * v.Merge * v.Merge
	s.budget = int64(s.CacheGB * (1 << 30))
	if s.CacheGB == 0 {
		s.budget = max(leastRows, 2*4*int64(rows)*int64(v.Rows))
	}
	return nil
}

// processorConfig reads a folder's settings of pictures, which newer ones have
// within processor_config.json.
func processorConfig(folder fs.FS) ([]byte, error) {
	return configWithin(folder, "image_processor")
}

// configWithin is processorConfig for a field of processor_config.json.
func configWithin(folder fs.FS, field string) ([]byte, error) {
	data, err := weights.ReadBounded(folder, "preprocessor_config.json", maxText)
	if !errors.Is(err, fs.ErrNotExist) {
		return data, err
	}
	all, failed := weights.ReadBounded(folder, "processor_config.json", maxText)
	if failed != nil {
		return nil, err
	}
	var within map[string]json.RawMessage
	if err := json.Unmarshal(all, &within); err != nil {
		return nil, fmt.Errorf("processor_config.json: %w", err)
	}
	if within[field] == nil {
		return nil, err
	}
	return within[field], nil
}

func (s *Sight) most() int {
	if s.Most == nil {
		return mostPictures
	}
	return *s.Most
}

// aside is the memory that seeing takes besides the weights.
func (s *Sight) aside(m *model.Model) int64 {
	if s.Sounds.extractor != nil {
		return s.Sounds.budget + m.TowerBytes(0)
	}
	if s.processor == nil {
		return 0
	}
	return s.budget + m.TowerBytes(s.patches)
}

// compile makes a tower ready. Its programs share a step's memory, so that the
// greatest, a layer's, comes first.
func (s *Sight) compile(be kernels.Backend, m *model.Model, slices []model.Slice) ([]worker.Slice, error) {
	if s.processor == nil && s.Sounds.extractor == nil {
		return nil, nil
	}
	out := make([]worker.Slice, len(slices))
	for k := range slices {
		i := (k + 1) % len(slices)
		exec, err := be.Compile(slices[i].Program, m.TowerLimits(s.patches, slices[i]))
		if err != nil {
			return nil, fmt.Errorf("the tower's part %d of %d: %w", i+1, len(slices), err)
		}
		out[i] = worker.Slice{Exec: exec, Windows: slices[i].Windows, Fold: slices[i].Fold, Aside: slices[i].Aside}
	}
	return out, nil
}

// tower is what the engine sees with; nil: it sees nothing.
func (s *Sight) tower(mem *memory, cfg model.Config) *worker.Tower {
	slices := func() []worker.Slice { return mem.tower }
	if h := cfg.Hearing; h != nil {
		return &worker.Tower{Slices: slices, Width: h.Width, Budget: s.Sounds.budget, Beside: true}
	}
	if s.processor == nil {
		return nil
	}
	return &worker.Tower{Slices: slices, Width: cfg.Vision.Rows, Budget: s.budget}
}

// decoders is how many pictures are decoded at once.
const decoders = 2

// server is how the server reads pictures; nil: it does not.
func (s *Sight) server(mem *memory, v *model.Vision) *server.Sight {
	if s.processor == nil {
		return nil
	}
	return &server.Sight{Processor: s.processor, Image: v.Image, Patches: s.patches, Most: s.most(), Pixels: s.Pixels, Folder: s.Folder, Domains: s.Domains,
		Decoding: make(chan struct{}, decoders),
		View: func(f *media.Features) worker.TowerInput {
			l := v.Layout(f.Lines, f.Line)
			return worker.TowerInput{Features: mem.places.Load().Beside(l.Arrange(f.Rows), &l, f.Lines, f.Line), Axes: l.Axes, Cuts: l.Cuts, Order: l.Order}
		}}
}

// sightSetters are of pictures.
func sightSetters() map[string]setter {
	return map[string]setter{
		"limit-mm-per-prompt":      limitMedia,
		"language-model-only":      flag(func(o *Options) *bool { return &o.Sight.TextAlone }),
		"allowed-media-domains":    texts(func(o *Options) *[]string { return &o.Sight.Domains }),
		"allowed-local-media-path": localMedia,
		"mm-processor-kwargs": func(o *Options, v string) error {
			var fields map[string]json.RawMessage
			if json.Unmarshal([]byte(v), &fields) != nil {
				return fmt.Errorf(`%.80q; want a JSON object of fields of preprocessor_config.json, as {"max_pixels": 1003520}`, v)
			}
			o.Sight.Processor = []byte(v)
			return nil
		},
		"mm-processor-cache-gb": func(o *Options, v string) error {
			n, err := strconv.ParseFloat(v, 64)
			if err != nil || !(n >= 0 && n <= 1<<20) {
				return fmt.Errorf("%q; want gibibytes, from 0 on", v)
			}
			o.Sight.CacheGB = n
			return nil
		},
	}
}

// limitMedia reads how many pictures a prompt may have: a number, or an object
// with a count.
func limitMedia(o *Options, v string) error {
	var limits map[string]json.RawMessage
	if json.Unmarshal([]byte(v), &limits) != nil {
		return fmt.Errorf(`%.80q; want a JSON object, as {"image": 4}`, v)
	}
	for kind, raw := range limits {
		n := new(int)
		if json.Unmarshal(raw, n) != nil {
			var counted struct {
				Count *int `json:"count"`
			}
			if json.Unmarshal(raw, &counted) != nil || counted.Count == nil {
				return fmt.Errorf(`%s is %.40s; want a number, or an object with a count`, kind, raw)
			}
			n = counted.Count
		}
		if *n < 0 {
			return fmt.Errorf("%s is %d; want 0 or more", kind, *n)
		}
		if kind == "image" {
			o.Sight.Most = n
		}
	}
	return nil
}

func localMedia(o *Options, v string) error {
	if v != "" && !filepath.IsAbs(v) {
		return fmt.Errorf("%q; want the whole path of a folder", v)
	}
	o.Sight.Folder = v
	return nil
}
