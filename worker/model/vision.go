package model

import (
	"encoding/json"
	"slices"

	"roundhouse/kernels"
)

// sight is what of config.json is a seeing model's beside its text.
type sight struct {
	Text       json.RawMessage `json:"text_config"`
	Vision     json.RawMessage `json:"vision_config"`
	ImageToken *int32          `json:"image_token_id"`

	seeing bool            // config.json is of a model that sees images, whose text model this is
	mrope  bool            // the rotation has sections for images
	eyes   *visionSettings // of Vision, where the architecture has a tower

	ears *hearingSettings // of config.json itself, where the architecture hears
}

// visionSettings are the fields of vision_config that matter.
type visionSettings struct {
	Depth    int     `json:"depth"`
	Embed    int     `json:"embed_dim"`   // Qwen2-VL: columns of a row of the tower
	Hidden   int     `json:"hidden_size"` // Qwen2-VL: columns of a row for the text; later ones: of a row of the tower
	Out      int     `json:"out_hidden_size"`
	Inner    int     `json:"intermediate_size"`
	Ratio    float64 `json:"mlp_ratio"`
	Heads    int     `json:"num_heads"`
	Act      string  `json:"hidden_act"`
	Channels int     `json:"in_channels"`
	Patch    int     `json:"patch_size"`
	Temporal int     `json:"temporal_patch_size"`
	Merge    int     `json:"spatial_merge_size"`
	Window   int     `json:"window_size"` // pixels a side
	Whole    []int   `json:"fullatt_block_indexes"`
	Deep     []int   `json:"deepstack_visual_indexes"` // layers whose rows the text's first layers are given
	Places   int     `json:"num_position_embeddings"`  // rows of a square table; 0: there is none
	Image    int     `json:"image_size"`               // GLM: pixels a side that the table was made for
	NormEps  float64 `json:"rms_norm_eps"`

	AttentionBias bool `json:"attention_bias"` // of queries, keys and values

	Rope struct {
		Theta float64 `json:"rope_theta"`
	} `json:"rope_parameters"`
}

// Vision is how a model sees, as far as it is known without its weights.
type Vision struct {
	Image    int32 // token that stands for a row of a picture
	Patch    int   // pixels a side
	Temporal int   // frames that a patch spans
	Merge    int   // patches a side that become one row
	Pixels   int   // columns of a patch, as a processor makes it
	Features int   // columns of a row that the tower reads: those of a patch, and of Places
	Rows     int   // columns of a row that it gives

	window int // merged rows a side of a window; 0: there are none
}

// Layout is in which order the rows of a picture go through a tower, and where
// they stand.
type Layout struct {
	Order []int32 // (rows) which row of the picture each is; nil: they are in its order
	Axes  []int32 // (patches, 3) line, column, and nothing
	Cuts  []int32 // (windows) the patch behind each
}

// Layout is that of a picture of so many lines of patches, and patches a line. A
// layer that attends within windows needs those of a window side by side, and no
// other cares for the order.
func (v *Vision) Layout(lines, line int) Layout {
	high, wide := lines/v.Merge, line/v.Merge
	side := v.window
	if side == 0 {
		side = max(high, wide, 1)
	}
	var l Layout
	for top := 0; top < high; top += side {
		for left := 0; left < wide; left += side {
			for y := top; y < min(top+side, high); y++ {
				for x := left; x < min(left+side, wide); x++ {
					l.Order = append(l.Order, int32(y*wide+x))
				}
			}
			l.Cuts = append(l.Cuts, int32(len(l.Order)*v.Merge*v.Merge))
		}
	}
	for _, at := range l.Order {
		top, left := int(at)/wide*v.Merge, int(at)%wide*v.Merge
		for i := range v.Merge * v.Merge {
			l.Axes = append(l.Axes, int32(top+i/v.Merge), int32(left+i%v.Merge), 0)
		}
	}
	if v.window == 0 {
		l.Order, l.Cuts = nil, nil
	}
	return l
}

// Arrange puts a picture's rows of features into the order of the tower.
func (l *Layout) Arrange(rows []float32) []float32 {
	if l.Order == nil {
		return rows
	}
	out, each := make([]float32, 0, len(rows)), len(rows)/len(l.Order)
	for _, at := range l.Order {
		out = append(out, rows[int(at)*each:][:each]...)
	}
	return out
}

// Limits bound a step of a slice, of pictures of at most so many patches. As many
// windows as rows touch an edge of a picture that is one row high.
func (v *Vision) Limits(patches int, s Slice) kernels.Limits {
	l := kernels.Limits{Tokens: patches / max(s.Fold, 1), Seqs: 1, Shared: true}
	if s.Windows {
		rows, side := patches/(v.Merge*v.Merge), v.window
		l.Seqs = min(rows, rows/(side*side)+(rows+1)/side+2)
	}
	return l
}

// visionOf is what others are told of how a model sees.
func visionOf(s *settings) *Vision {
	v := s.eyes
	image := int32(-1)
	if s.ImageToken != nil {
		image = *s.ImageToken
	}
	c := &Vision{Image: image, Patch: v.Patch, Temporal: v.Temporal, Merge: v.Merge, Pixels: v.pixels(), Features: v.pixels(),
		Rows: v.rowWidth(s.Hidden), window: v.Window / max(v.Patch*v.Merge, 1)}
	if v.Places > 0 {
		c.Features += v.Hidden
	}
	return c
}

// pixels is the numbers of a patch.
func (v *visionSettings) pixels() int { return v.Channels * v.Temporal * v.Patch * v.Patch }

// rowWidth is the columns of a row that a tower gives: what stands in a token's
// place, and what is added to it behind the first layers.
func (v *visionSettings) rowWidth(hidden int) int { return hidden * (1 + len(v.Deep)) }

// show puts rows of pictures where tokens stand for them.
func (s *stream) show() {
	g := s.g
	g.prog.Do(&kernels.Place{X: s.x, Width: g.eyes.rowWidth(g.Hidden)})
}

// showDeep adds what a tower gives for a layer of the text behind it.
func (s *stream) showDeep(layer int) {
	g := s.g
	if layer < len(g.eyes.Deep) {
		g.prog.Do(&kernels.Place{X: s.x, First: (layer + 1) * g.Hidden, Width: g.eyes.rowWidth(g.Hidden), Add: true})
	}
}

// inOrder gives the first pairs to time, the next to lines, the last to columns.
func inOrder(sections []int, _ int) []uint8 {
	var axes []uint8
	for axis, n := range sections {
		axes = append(axes, slices.Repeat([]uint8{uint8(axis)}, n)...)
	}
	return axes
}

// inTurns gives pairs to time, lines and columns in turns, as long as lines and
// columns have some left; the rest is time's.
func inTurns(sections []int, pairs int) []uint8 {
	axes := make([]uint8, pairs)
	for i := range axes {
		if axis := i % 3; i/3 < sections[axis] {
			axes[i] = uint8(axis)
		}
	}
	return axes
}
