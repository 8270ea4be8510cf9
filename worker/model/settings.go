package model

import (
	"encoding/json"
	"fmt"
)

// settings are the fields of config.json that matter, by the names that
// transformers gave them. An architecture's defaults are filled in before the
// file is read, so a field that the file leaves out has the value that the
// class of transformers has; a pointer tells null from absent.
type settings struct {
	Architectures []string `json:"architectures"`
	ModelType     string   `json:"model_type"`

	Vocab        int     `json:"vocab_size"`
	Hidden       int     `json:"hidden_size"`
	Inner        int     `json:"intermediate_size"`
	Layers       int     `json:"num_hidden_layers"`
	Heads        int     `json:"num_attention_heads"`
	KVHeads      int     `json:"num_key_value_heads"` // 0: as many as Heads
	HeadDim      int     `json:"head_dim"`            // 0: Hidden / Heads
	MaxPositions int     `json:"max_position_embeddings"`
	Act          string  `json:"hidden_act"`
	NormEps      float64 `json:"rms_norm_eps"`
	Tied         bool    `json:"tie_word_embeddings"`
	BOS          ids     `json:"bos_token_id"`
	EOS          ids     `json:"eos_token_id"`
	DType        string  `json:"dtype"`
	TorchDType   string  `json:"torch_dtype"` // dtype's name before transformers 5

	AttentionBias    bool `json:"attention_bias"`
	AttentionOutBias bool `json:"attention_out_bias"`
	MLPBias          bool `json:"mlp_bias"`
	QKNorm           bool `json:"use_qk_norm"`

	RopeTheta      float64         `json:"rope_theta"`
	PartialRotary  float64         `json:"partial_rotary_factor"` // 0: 1
	RopeScaling    json.RawMessage `json:"rope_scaling"`
	RopeParameters json.RawMessage `json:"rope_parameters"`

	Window          *int     `json:"sliding_window"`
	UseWindow       bool     `json:"use_sliding_window"` // Qwen
	MaxWindowLayers int      `json:"max_window_layers"`  // Qwen: layers below it see all
	LayerTypes      []string `json:"layer_types"`

	// Mixtures of experts.
	Experts       int     `json:"num_experts"`
	LocalExperts  int     `json:"num_local_experts"`
	RoutedExperts int     `json:"n_routed_experts"`
	SharedExperts int     `json:"n_shared_experts"`
	ExpertsPerTok int     `json:"num_experts_per_tok"`
	ExpertInner   int     `json:"moe_intermediate_size"`
	NormTopK      bool    `json:"norm_topk_prob"`
	SparseStep    int     `json:"decoder_sparse_step"`
	DenseLayers   []int   `json:"mlp_only_layers"`
	FirstDense    int     `json:"first_k_dense_replace"`
	ExpertGroups  int     `json:"n_group"`
	TopGroups     int     `json:"topk_group"`
	RoutedScale   float64 `json:"routed_scaling_factor"`
	SwiGLULimit   float64 `json:"swiglu_limit"`
	SwiGLUAlpha   float64 `json:"swiglu_alpha"`
	ScoringFunc   string  `json:"scoring_func"`
	TopKMethod    string  `json:"topk_method"`

	// Gemma.
	HiddenActivation string   `json:"hidden_activation"`
	QueryScale       float64  `json:"query_pre_attn_scalar"`
	LogitSoftCap     *float64 `json:"final_logit_softcapping"`
	AttnSoftCap      *float64 `json:"attn_logit_softcapping"`
	LocalTheta       float64  `json:"rope_local_base_freq"`
	WindowPattern    int      `json:"sliding_window_pattern"`
	BothWays         *bool    `json:"use_bidirectional_attention"`

	// The gated delta rule.
	DeltaKeyHeads   int `json:"linear_num_key_heads"`
	DeltaValueHeads int `json:"linear_num_value_heads"`
	DeltaKeyDim     int `json:"linear_key_head_dim"`
	DeltaValueDim   int `json:"linear_value_head_dim"`
	DeltaTaps       int `json:"linear_conv_kernel_dim"`
	SharedInner     int `json:"shared_expert_intermediate_size"`
	FullInterval    int `json:"full_attention_interval"`

	// Latent attention.
	KVRank    int  `json:"kv_lora_rank"`
	QueryRank *int `json:"q_lora_rank"`
	PlainDim  int  `json:"qk_nope_head_dim"`
	TurnedDim int  `json:"qk_rope_head_dim"`
	ValueDim  int  `json:"v_head_dim"`

	// Encoders.
	LayerNormEps float64           `json:"layer_norm_eps"`
	TypeVocab    int               `json:"type_vocab_size"`
	Pad          *int              `json:"pad_token_id"`
	PositionType string            `json:"position_embedding_type"`
	Labels       int               `json:"num_labels"`
	LabelNames   map[string]string `json:"id2label"`
	Decoder      bool              `json:"is_decoder"`

	// Of models that embed: lengths that a vector may be cut to.
	Matryoshka bool  `json:"is_matryoshka"`
	Dimensions []int `json:"matryoshka_dimensions"`

	// Of a decoder that scores: the tokens for no and for yes, whose rows of the
	// head are the classifier.
	AnswerTokens []int32 `json:"answer_token_ids"`

	Quantization json.RawMessage `json:"quantization_config"`

	sight

	// scoring: the decoder ends in a classifier.
	scoring bool

	// Of other files of the folder.
	quant   *quant
	pooling *pooling  // nil: the model generates or scores
	gguf    *ggufFile // nil: the model is a folder
}

// ids are token ids, in files either one number or a list.
type ids []int32

// UnmarshalJSON takes a number, a list of numbers, or null.
func (v *ids) UnmarshalJSON(data []byte) error {
	var list []int32
	if err := json.Unmarshal(data, &list); err == nil {
		*v = list
		return nil
	}
	var one int32
	if err := json.Unmarshal(data, &one); err != nil {
		return fmt.Errorf("want a token id or a list of them, found %.40s", data)
	}
	*v = ids{one}
	return nil
}

// complete fills in what follows from other fields, then checks the bounds
// and what all architectures have in common. Every fault is listed.
func (s *settings) complete() []string {
	if s.KVHeads == 0 {
		s.KVHeads = s.Heads
	}
	if s.HeadDim == 0 && s.Heads > 0 {
		s.HeadDim = s.Hidden / s.Heads
	}
	if s.DType == "" {
		s.DType = s.TorchDType
	}
	if s.PartialRotary == 0 {
		s.PartialRotary = 1
	}
	var faults []string
	bound := func(field string, value, low, high int) {
		if value == 0 && low > 0 {
			faults = append(faults, fmt.Sprintf("%s is 0 or absent; want %d to %d", field, low, high))
		} else if value < low || value > high {
			faults = append(faults, fmt.Sprintf("%s is %d; want %d to %d", field, value, low, high))
		}
	}
	bound("vocab_size", s.Vocab, 1, 1<<22)
	bound("hidden_size", s.Hidden, 1, 1<<17)
	bound("intermediate_size", s.Inner, 1, 1<<20)
	bound("num_hidden_layers", s.Layers, 1, maxLayers)
	bound("num_attention_heads", s.Heads, 1, 1024)
	bound("num_key_value_heads", s.KVHeads, 1, 1024)
	bound("head_dim", s.HeadDim, 1, 1024)
	bound("max_position_embeddings", s.MaxPositions, 1, 1<<26)
	if s.KVHeads > 0 && s.Heads%s.KVHeads != 0 {
		faults = append(faults, fmt.Sprintf("num_attention_heads %d is no multiple of num_key_value_heads %d", s.Heads, s.KVHeads))
	}
	if !(s.NormEps > 0 && s.NormEps < 1) {
		faults = append(faults, fmt.Sprintf("rms_norm_eps is %g; want 0 to 1", s.NormEps))
	}
	if s.Window != nil {
		bound("sliding_window", *s.Window, 0, 1<<26)
	}
	if len(s.LayerTypes) != 0 && len(s.LayerTypes) != s.Layers {
		faults = append(faults, fmt.Sprintf("layer_types names %d layers of %d", len(s.LayerTypes), s.Layers))
	}
	for i, t := range s.LayerTypes {
		if t != fullAttention && t != slidingAttention && (t != linearAttention || s.DeltaTaps == 0) {
			faults = append(faults, fmt.Sprintf("layer_types[%d] is %.40q, which this architecture does not have", i, t))
			break
		}
	}
	for _, d := range s.Dimensions {
		bound("matryoshka_dimensions", d, 1, s.Hidden)
	}
	return append(faults, s.checkTokens()...)
}

func (s *settings) checkTokens() []string {
	var faults []string
	for _, id := range s.AnswerTokens {
		if len(s.AnswerTokens) != 2 || id < 0 || int(id) >= s.Vocab {
			faults = append(faults, fmt.Sprintf("answer_token_ids are %v; want two below vocab_size %d", s.AnswerTokens, s.Vocab))
			break
		}
	}
	for _, id := range append(append([]int32(nil), s.BOS...), s.EOS...) {
		if id < 0 || int(id) >= s.Vocab {
			faults = append(faults, fmt.Sprintf("token id %d of bos_token_id or eos_token_id is not below vocab_size %d", id, s.Vocab))
		}
	}
	return faults
}

// maxLayers bounds num_hidden_layers.
const maxLayers = 1024

// The kinds of layer_types.
const (
	fullAttention    = "full_attention"
	slidingAttention = "sliding_attention"
	linearAttention  = "linear_attention"
)

// window is how many tokens a query of a layer sees, itself included; 0: all.
func (s *settings) window(layer int) int {
	if s.Window == nil || *s.Window <= 0 || s.layerType(layer) == fullAttention {
		return 0
	}
	return *s.Window
}

func (s *settings) layerType(layer int) string {
	if len(s.LayerTypes) > 0 {
		return s.LayerTypes[layer]
	}
	return slidingAttention
}
