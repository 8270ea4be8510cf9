package model

import (
	"encoding/json"

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
	Rope     struct {
		Theta float64 `json:"rope_theta"`
	} `json:"rope_parameters"`
}

// Vision is how a model sees, as far as it is known without its weights.
type Vision struct {
	Image    int32 // token that stands for a row of a picture
	Patch    int   // pixels a side
	Temporal int   // frames that a patch spans
	Merge    int   // patches a side that become one row
	Features int   // columns of a row that the tower reads
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
	return &Vision{Image: image, Patch: v.Patch, Temporal: v.Temporal, Merge: v.Merge,
		Features: v.Channels * v.Temporal * v.Patch * v.Patch, Rows: s.Hidden, window: v.Window / max(v.Patch*v.Merge, 1)}
}
