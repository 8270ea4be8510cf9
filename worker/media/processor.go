package media

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
)

// Processor makes features of pictures as the image processors of Qwen2-VL, which
// its successors share, and of GLM-4.1V do.
type Processor struct {
	settings settings
	table    [3][256]float32 // what a byte of a channel becomes
	key      []byte          // of all that the features depend on
}

// settings are the fields of preprocessor_config.json that matter.
type settings struct {
	Type string `json:"image_processor_type"`

	Resize    bool       `json:"do_resize"`
	Resample  Filter     `json:"resample"`
	Rescale   bool       `json:"do_rescale"`
	Factor    float64    `json:"rescale_factor"`
	Normalise bool       `json:"do_normalize"`
	Mean      [3]float64 `json:"image_mean"`
	Deviation [3]float64 `json:"image_std"`
	Patch     int        `json:"patch_size"`
	Temporal  int        `json:"temporal_patch_size"`
	Merge     int        `json:"merge_size"`

	// The least and the most pixels that a picture is brought to, by any of the
	// names that folders have.
	Least *int `json:"min_pixels"`
	Most  *int `json:"max_pixels"`
	Size  struct {
		Shortest *int `json:"shortest_edge"`
		Longest  *int `json:"longest_edge"`
		Least    *int `json:"min_pixels"`
		Most     *int `json:"max_pixels"`
	} `json:"size"`
}

// family is what processors differ in.
type family struct {
	least, most int  // pixels, where the file does not give them
	frames      bool // limits are of all frames that a patch spans
	enlarge     bool // a side shorter than a row of the model's is brought to it first
}

var (
	qwenFamily = &family{least: 56 * 56, most: 28 * 28 * 1280}
	glmFamily  = &family{least: 112 * 112, most: 28 * 28 * 15000, frames: true, enlarge: true}
)

// processors are the names of image_processor_type that are known.
var processors = map[string]*family{
	"": qwenFamily, "Qwen2VLImageProcessor": qwenFamily, "Qwen2VLImageProcessorFast": qwenFamily, "Qwen2_5_VLImageProcessor": qwenFamily, "Qwen2VLImageProcessorPil": qwenFamily,
	"Glm4vImageProcessor": glmFamily, "Glm4vImageProcessorFast": glmFamily, "Glm4vImageProcessorPil": glmFamily,
	"Glm46VImageProcessor": glmFamily, "Glm46VImageProcessorFast": glmFamily, "Glm46VImageProcessorPil": glmFamily,
}

// NewProcessor reads a folder's preprocessor_config.json; over, which may be nil,
// has fields that take the place of the file's.
func NewProcessor(config, over []byte) (*Processor, error) {
	p := &Processor{settings: settings{
		Resize: true, Resample: Bicubic, Rescale: true, Factor: 1 / 255.0, Normalise: true,
		Mean: [3]float64{0.48145466, 0.4578275, 0.40821073}, Deviation: [3]float64{0.26862954, 0.26130258, 0.27577711},
		Patch: 14, Temporal: 2, Merge: 2,
	}}
	s := &p.settings
	if err := json.Unmarshal(config, s); err != nil {
		return nil, fmt.Errorf("preprocessor_config.json: %w", err)
	}
	if len(over) > 0 {
		if err := json.Unmarshal(over, s); err != nil {
			return nil, fmt.Errorf("the processor's settings: %w", err)
		}
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("preprocessor_config.json: %w", err)
	}
	for c := range p.table {
		for v := range p.table[c] {
			x := float32(v)
			if s.Rescale {
				x = float32(float64(v) * s.Factor)
			}
			if s.Normalise {
				x = (x - float32(s.Mean[c])) / float32(s.Deviation[c])
			}
			p.table[c][v] = x
		}
	}
	key, err := json.Marshal(s)
	p.key = key
	return p, err
}

func (s *settings) check() error {
	if processors[s.Type] == nil {
		return fmt.Errorf("image_processor_type %.64q is not known; known are Qwen2VLImageProcessor, Glm4vImageProcessor and Glm46VImageProcessor", s.Type)
	}
	least, most := s.pixels()
	switch {
	case !s.Resize:
		return fmt.Errorf("do_resize is false; pictures whose sides are no multiple of a patch need it")
	case s.Resample.support() == 0:
		return fmt.Errorf("resample is %d; known are 1 (Lanczos), 2 (bilinear), 3 (bicubic) and 4 (box)", s.Resample)
	case s.Patch < 1 || s.Patch > 256 || s.Merge < 1 || s.Merge > 16 || s.Temporal < 1 || s.Temporal > 16:
		return fmt.Errorf("patch_size %d, merge_size %d and temporal_patch_size %d; want 1 to 256, 1 to 16 and 1 to 16", s.Patch, s.Merge, s.Temporal)
	case least < 1 || most < least || most > 1<<30:
		return fmt.Errorf("pictures of %d to %d pixels (shortest_edge and longest_edge, or min_pixels and max_pixels); want 1 to 2^30", least, most)
	case most/s.frames() < s.Patch*s.Merge*s.Patch*s.Merge:
		return fmt.Errorf("pictures of at most %d pixels; one row of the model's is %d", most/s.frames(), s.Patch*s.Merge*s.Patch*s.Merge)
	}
	for c := range 3 {
		if s.Normalise && !(s.Deviation[c] > 0) {
			return fmt.Errorf("image_std is %v; want three numbers above 0", s.Deviation)
		}
	}
	return nil
}

// frames is how often a picture counts.
func (s *settings) frames() int {
	if processors[s.Type].frames {
		return s.Temporal
	}
	return 1
}

// pixels are the least and the most that a picture is brought to, as often as it
// counts.
func (s *settings) pixels() (least, most int) {
	least, most = processors[s.Type].least, processors[s.Type].most
	for _, v := range []*int{s.Size.Shortest, s.Size.Least, s.Least} {
		if v != nil {
			least = *v
		}
	}
	for _, v := range []*int{s.Size.Longest, s.Size.Most, s.Most} {
		if v != nil {
			most = *v
		}
	}
	return least, most
}

// Width is the columns of a row of features.
func (p *Processor) Width() int {
	s := &p.settings
	return 3 * s.Temporal * s.Patch * s.Patch
}

// Patch is the pixels of a side of a patch.
func (p *Processor) Patch() int { return p.settings.Patch }

// Merge is the patches of a side of what becomes one row of the model.
func (p *Processor) Merge() int { return p.settings.Merge }

// MostRows is the rows that the greatest picture becomes for the model.
func (p *Processor) MostRows() int {
	_, most := p.settings.pixels()
	side := p.settings.Patch * p.settings.Merge
	return max(1, most/(side*side*p.settings.frames()))
}

// mostRatio is how much longer one side of a picture may be than the other.
const mostRatio = 200

// Resized is the size that a picture is brought to: whole patches that can be
// merged, as near to its shape as that allows, within the limits of pixels.
func (p *Processor) Resized(width, height int) (w, h int, err error) {
	if width < 1 || height < 1 {
		return 0, 0, refuse("the image has %d by %d pixels", width, height)
	}
	s := &p.settings
	least, most := s.pixels()
	f, n := float64(s.Patch*s.Merge), float64(s.frames())
	x, y := float64(width), float64(height)
	if low := min(x, y); processors[s.Type].enlarge && low < f {
		scale := max(f/y, f/x)
		x, y = math.Trunc(float64(x*scale)), math.Trunc(float64(y*scale))
	}
	if max(x, y) > mostRatio*min(x, y) {
		return 0, 0, refuse("the image has %d by %d pixels; one side may be at most %d times as long as the other", width, height, mostRatio)
	}
	wide, high := math.RoundToEven(x/f)*f, math.RoundToEven(y/f)*f
	switch {
	case n*wide*high > float64(most):
		beta := math.Sqrt(n * x * y / float64(most))
		wide, high = max(f, math.Floor(x/beta/f)*f), max(f, math.Floor(y/beta/f)*f)
	case n*wide*high < float64(least):
		beta := math.Sqrt(float64(least) / (n * x * y))
		wide, high = math.Ceil(float64(x*beta)/f)*f, math.Ceil(float64(y*beta)/f)*f
	}
	return int(wide), int(high), nil
}

// Features are the rows that a tower reads: one a patch, the patches that are
// merged next to each other.
type Features struct {
	Time, Lines, Line int // the grid, in patches
	Width             int
	Rows              []float32
}

// Count is the number of patches.
func (f *Features) Count() int { return f.Time * f.Lines * f.Line }

// Grid is the patches that a picture of this size becomes.
func (p *Processor) Grid(width, height int) (lines, line int, err error) {
	w, h, err := p.Resized(width, height)
	return h / p.settings.Patch, w / p.settings.Patch, err
}

// Fit brings a picture to its target.
func (p *Processor) Fit(pic *Picture) (*Picture, error) {
	w, h, err := p.Resized(pic.Width, pic.Height)
	if err != nil {
		return nil, err
	}
	return pic.Resize(w, h, p.settings.Resample), nil
}

// Features makes those of a picture that fits.
func (p *Processor) Features(pic *Picture) *Features {
	s := &p.settings
	f := &Features{Time: 1, Lines: pic.Height / s.Patch, Line: pic.Width / s.Patch, Width: p.Width()}
	f.Rows = make([]float32, 0, f.Count()*f.Width)
	for line := 0; line < f.Lines; line += s.Merge {
		for at := 0; at < f.Line; at += s.Merge {
			for i := range s.Merge * s.Merge {
				f.Rows = p.patch(f.Rows, pic, (line+i/s.Merge)*s.Patch, (at+i%s.Merge)*s.Patch)
			}
		}
	}
	return f
}

// patch appends one patch: channel by channel, and the picture again for each
// of the frames that a patch spans.
func (p *Processor) patch(to []float32, pic *Picture, top, left int) []float32 {
	s := &p.settings
	for c := range 3 {
		table, begin := &p.table[c], len(to)
		for y := top; y < top+s.Patch; y++ {
			line := pic.Pix[3*(y*pic.Width+left)+c:]
			for x := range s.Patch {
				to = append(to, table[line[3*x]])
			}
		}
		frame := to[begin:]
		for range s.Temporal - 1 {
			to = append(to, frame...)
		}
	}
	return to
}

// Digest names what a tower makes of a file: two files have the same only if
// they are the same, under the same settings.
type Digest [32]byte

// Digest is that of a picture's file.
func (p *Processor) Digest(file []byte) Digest {
	h := sha256.New()
	for _, part := range [][]byte{[]byte("image"), p.key, file} {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	return Digest(h.Sum(nil))
}
