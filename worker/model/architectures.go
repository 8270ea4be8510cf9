package model

import (
	"fmt"
	"slices"
	"strings"

	"roundhouse/configs/near"
)

// architecture is one row of the table of what is supported.
type architecture struct {
	name     string // as "architectures" of config.json has it
	kind     Kind
	families string    // what people know it by
	features string    // what the golden test covers, for docs/models.md
	quants   []string  // quant_method of checkpoints that it reads
	fixture  string    // testdata/<fixture>.json holds its golden test
	gguf     *ggufForm // of its GGUF files; nil: none are read

	seeing   bool   // sees images too: its text model stands in text_config
	encoder  bool   // keeps no KV cache
	segments bool   // a pair's texts have segments
	padding  bool   // a token takes no position
	embeds   string // testdata/<embeds>.json: golden test as an embedding model; "": it is none

	defaults func(*settings) // before config.json is read
	finish   func(*settings) // after; nil: nothing
	record   func(*graph)
	tower    func(*graph) *tower // of what sees, after record; nil: it sees nothing
}

// architectures is the table, in the order of the documentation.
func architectures() []architecture { return slices.Concat(decoders(), seers(), hearers(), encoders()) }

func decoders() []architecture {
	return []architecture{
		{name: "LlamaForCausalLM", kind: Generate, gguf: ggufLlama, quants: linearQuants(), fixture: "llama", defaults: llamaDefaults, record: llama,
			families: "Llama 2, Llama 3.x, DeepSeek-R1-Distill-Llama",
			features: "GQA, RoPE (default, linear, dynamic, llama3, YaRN), biases, tied or untied head"},
		{name: "Qwen2ForCausalLM", kind: Generate, gguf: ggufQwen2, quants: linearQuants(), fixture: "qwen2", defaults: qwen2Defaults, finish: qwenWindows, record: qwen2,
			families: "Qwen2, Qwen2.5, QwQ, DeepSeek-R1-Distill-Qwen",
			features: "GQA, biases, windows on the upper layers, YaRN"},
		{name: "Qwen3ForCausalLM", kind: Generate, gguf: ggufQwen3, quants: linearQuants(), fixture: "qwen3", defaults: qwen3Defaults, finish: qwenWindows, record: qwen3,
			families: "Qwen3 (dense), Qwen3-Embedding", embeds: "qwen3_embed",
			features: "GQA, QK norms, windows on the upper layers, YaRN"},
		{name: "Qwen3Model", kind: Embed, quants: linearQuants(), fixture: "qwen3_embed", defaults: qwen3Defaults, finish: qwenWindows, record: qwen3, embeds: "qwen3_embed",
			families: "Qwen3 embedders, as sentence-transformers writes them",
			features: "Qwen3's, pooling (first, mean, last), normalisation"},
		{name: "Qwen3ForSequenceClassification", kind: Score, quants: linearQuants(), fixture: "qwen3_score", defaults: qwen3ScoreDefaults, finish: qwenWindows, record: qwen3,
			families: "Qwen3-Reranker as a classifier",
			features: "Qwen3's, labels from the last token"},
		{name: "Qwen3MoeForCausalLM", kind: Generate, gguf: ggufQwen3MoE, quants: linearQuants(), fixture: "qwen3_moe", defaults: qwen3MoEDefaults, finish: qwen3MoEFinish, record: qwen3MoE,
			families: "Qwen3-30B-A3B, Qwen3-235B-A22B, Qwen3-Coder",
			features: "Qwen3's, experts by softmax, dense layers between"},
		{name: "Qwen3NextForCausalLM", kind: Generate, fixture: "qwen3_next", defaults: qwen3NextDefaults, finish: qwenHybridLayers, record: qwen3Next,
			families: "Qwen3-Next-80B-A3B",
			features: "gated delta rule with a recurrent state, gated attention, partial RoPE, experts by softmax, gated shared expert"},
		{name: "Qwen3_5ForCausalLM", kind: Generate, fixture: "qwen3_5", defaults: qwen35Defaults, finish: qwenHybridLayers, record: qwen35,
			families: "Qwen3.5, Qwen3.6 (dense, text alone)",
			features: "gated delta rule with a recurrent state, gated attention, partial RoPE"},
		{name: "Qwen3_5MoeForCausalLM", kind: Generate, fixture: "qwen3_5_moe", defaults: qwen35MoEDefaults, finish: qwenHybridLayers, record: qwen35MoE,
			families: "Qwen3.5, Qwen3.6 (experts, text alone)",
			features: "as Qwen3_5ForCausalLM, experts by softmax in one tensor or in many, gated shared expert"},
		{name: "MistralForCausalLM", kind: Generate, quants: linearQuants(), fixture: "mistral", defaults: mistralDefaults, record: mistral,
			families: "Mistral 7B, Ministral 8B, Mistral Nemo",
			features: "GQA, sliding window, YaRN"},
		{name: "MixtralForCausalLM", kind: Generate, gguf: ggufMixtral, quants: linearQuants(), fixture: "mixtral", defaults: mixtralDefaults, record: mixtral,
			families: "Mixtral 8x7B, 8x22B",
			features: "GQA, sliding window, experts by softmax"},
		{name: "Gemma3ForCausalLM", kind: Generate, gguf: ggufGemma3, quants: linearQuants(), fixture: "gemma3", defaults: gemma3Defaults, finish: gemma3Windows, record: gemma3,
			families: "Gemma 3 (text: 270M, 1B)",
			features: "norms around branches, QK norms, windows by pattern with a base of their own, linear RoPE, logit soft cap"},
		{name: "Gemma3ForConditionalGeneration", kind: Generate, quants: linearQuants(), fixture: "gemma3_vl", defaults: gemma3Defaults, finish: gemma3Windows, record: gemma3, seeing: true,
			families: "Gemma 3 (4B, 12B, 27B)",
			features: "as Gemma3ForCausalLM; text only, no images"},
		{name: "GlmForCausalLM", kind: Generate, quants: linearQuants(), fixture: "glm", defaults: glmDefaults, record: glm,
			families: "GLM-4-9B",
			features: "GQA, biases, partial interleaved RoPE"},
		{name: "Glm4ForCausalLM", kind: Generate, quants: linearQuants(), fixture: "glm4", defaults: glmDefaults, record: glm4,
			families: "GLM-4-0414 (9B, 32B), GLM-Z1",
			features: "GLM's, norms around branches, YaRN"},
		{name: "Glm4MoeForCausalLM", kind: Generate, quants: linearQuants(), fixture: "glm4_moe", defaults: glm4MoEDefaults, record: glm4MoE,
			families: "GLM-4.5, GLM-4.5-Air, GLM-4.6",
			features: "GQA, biases, partial RoPE, QK norms, experts by biased sigmoid in groups, shared expert"},
		{name: "GptOssForCausalLM", kind: Generate, fixture: "gpt_oss", defaults: gptOSSDefaults, finish: gptOSSWindows, record: gptOSS,
			families: "gpt-oss-20b, gpt-oss-120b", quants: []string{"mxfp4"},
			features: "GQA, biases, attention sinks, windows in turns, YaRN untruncated, experts with clamped gates, MXFP4"},
		{name: "DeepseekV2ForCausalLM", kind: Generate, fixture: "deepseek_v2", defaults: deepseek2Defaults, finish: deepseek2Heads, record: deepseek2,
			families: "DeepSeek-V2-Lite, DeepSeek-Coder-V2-Lite",
			features: "latent attention with latents alone in the cache, query latents, YaRN with mscale, experts by softmax in groups, shared experts"},
		{name: "SeedOssForCausalLM", kind: Generate, quants: linearQuants(), fixture: "seed_oss", defaults: seedOSSDefaults, record: seedOSS,
			families: "Seed-OSS-36B",
			features: "GQA, biases"},
		{name: "HunYuanDenseV1ForCausalLM", kind: Generate, quants: linearQuants(), fixture: "hunyuan", defaults: hunyuanDefaults, record: hunyuan,
			families: "Hunyuan dense (0.5B to 7B)",
			features: "GQA, QK norms after RoPE, RoPE with alpha"},
	}
}

// seers are decoders with a tower.
func seers() []architecture {
	return []architecture{
		{name: "Qwen2VLForConditionalGeneration", kind: Generate, quants: linearQuants(), fixture: "qwen2_vl", defaults: qwen2VLDefaults, finish: qwenWindows, record: qwen2Seeing, tower: qwen2Tower, seeing: true,
			families: "Qwen2-VL, UI-TARS, MinerU2.5",
			features: "as Qwen2ForCausalLM with positions on three axes; images: tower with layer norms, positions by line and column, rows merged by an MLP"},
		{name: "Qwen2_5_VLForConditionalGeneration", kind: Generate, quants: linearQuants(), fixture: "qwen2_5_vl", defaults: qwen25VLDefaults, finish: qwenWindows, record: qwen2Seeing, tower: qwen25Tower, seeing: true,
			families: "Qwen2.5-VL",
			features: "as Qwen2VLForConditionalGeneration; the tower has RMS norms, gated MLPs, windows in all layers but some"},
		{name: "Qwen3VLForConditionalGeneration", kind: Generate, quants: linearQuants(), fixture: "qwen3_vl", defaults: qwen3VLDefaults, finish: qwen3VLFinish, record: qwen3Seeing, tower: qwen3Tower, seeing: true,
			families: "Qwen3-VL (dense)",
			features: "as Qwen3ForCausalLM with positions on three axes in turns; images: tower with a table of positions that is stretched, rows added behind the text's first layers (DeepStack)"},
		{name: "Qwen3VLMoeForConditionalGeneration", kind: Generate, quants: []string{"gptq", "awq", "compressed-tensors"}, fixture: "qwen3_vl_moe", defaults: qwen3VLMoEDefaults, finish: qwen3VLFinish, record: qwen3MoESeeing, tower: qwen3Tower, seeing: true,
			families: "Qwen3-VL-30B-A3B, Qwen3-VL-235B-A22B",
			features: "as Qwen3VLForConditionalGeneration, experts by softmax in tensors of either order"},
		{name: "Qwen3_5ForConditionalGeneration", kind: Generate, fixture: "qwen3_5_vl", defaults: qwen35VLDefaults, finish: qwen35VLFinish, record: qwen35, tower: qwen3Tower, seeing: true,
			families: "Qwen3.5, Qwen3.6 (dense)",
			features: "as Qwen3_5ForCausalLM with positions on three axes in turns; images: Qwen3-VL's tower without DeepStack"},
		{name: "Qwen3_5MoeForConditionalGeneration", kind: Generate, fixture: "qwen3_5_moe_vl", defaults: qwen35MoEVLDefaults, finish: qwen35VLFinish, record: qwen35MoE, tower: qwen3Tower, seeing: true,
			families: "Qwen3.5, Qwen3.6 (experts)",
			features: "as Qwen3_5MoeForCausalLM, experts; images as Qwen3_5ForConditionalGeneration"},
		{name: "Glm4vForConditionalGeneration", kind: Generate, quants: linearQuants(), fixture: "glm4v", defaults: glm4VDefaults, finish: glm4VFinish, record: glm4Seeing, tower: glmTower, seeing: true,
			families: "GLM-4.1V, Glyph",
			features: "as Glm4ForCausalLM with positions on three axes; images: tower with RMS norms, a table of positions that is stretched by cubic pieces, rows merged by a convolution"},
		{name: "Glm46VForConditionalGeneration", kind: Generate, quants: linearQuants(), fixture: "glm46v", defaults: glm4VDefaults, finish: glm4VFinish, record: glm4Seeing, tower: glmTower, seeing: true,
			families: "GLM-4.6V-Flash",
			features: "as Glm4vForConditionalGeneration"},
		{name: "Glm4vMoeForConditionalGeneration", kind: Generate, quants: linearQuants(), fixture: "glm4v_moe", defaults: glm4VMoEDefaults, finish: glm4VFinish, record: glm4MoE, tower: glmTower, seeing: true,
			families: "GLM-4.5V, GLM-4.6V",
			features: "as Glm4MoeForCausalLM, experts, with positions on three axes; images as Glm4vForConditionalGeneration"},
	}
}

// hearers are decoders behind an encoder of sound.
func hearers() []architecture {
	return []architecture{
		{name: "WhisperForConditionalGeneration", kind: Generate, fixture: "whisper", defaults: whisperDefaults, finish: whisperFinish, record: whisper, tower: whisperTower,
			families: "Whisper (tiny to large-v3, turbo, .en)",
			features: "layer norms, biases, learned positions, attention over the rows of an encoder; sound: log-mel spectrogram, convolutions, greedy text with and without times"},
	}
}

func encoders() []architecture {
	return []architecture{
		{name: "BertModel", kind: Embed, fixture: "bert", defaults: bertDefaults, finish: encoderEps, record: bertEmbed, encoder: true, segments: true, embeds: "bert",
			families: "BERT embeddings: bge-large, all-MiniLM, e5",
			features: "segments, pooling (first, mean, last), normalisation"},
		{name: "BertForSequenceClassification", kind: Score, fixture: "bert_score", defaults: bertDefaults, finish: encoderEps, record: bertScore, encoder: true, segments: true,
			families: "BERT cross-encoders: ms-marco-MiniLM",
			features: "segments, labels"},
		{name: "XLMRobertaModel", kind: Embed, fixture: "xlm_roberta", defaults: xlmRobertaDefaults, finish: xlmRobertaPositions, record: xlmRobertaEmbed, encoder: true, padding: true, embeds: "xlm_roberta",
			families: "XLM-RoBERTa embeddings: bge-m3, multilingual-e5",
			features: "positions from the padding on, pooling (first, mean, last), normalisation"},
		{name: "XLMRobertaForSequenceClassification", kind: Score, fixture: "xlm_roberta_score", defaults: xlmRobertaDefaults, finish: xlmRobertaPositions, record: xlmRobertaScore, encoder: true, padding: true,
			families: "XLM-RoBERTa rerankers: bge-reranker-base, bge-reranker-large, bge-reranker-v2-m3",
			features: "positions from the padding on, labels"},
	}
}

// groups are the KV groups of a model of this architecture.
func (a architecture) groups(s *settings) []group {
	if a.encoder {
		return nil
	}
	if s.ears != nil {
		return append(kvGroups(s), heardGroup(s))
	}
	return kvGroups(s)
}

// findArchitecture picks the row of the first name of config.json.
func findArchitecture(names []string) (architecture, error) {
	if len(names) == 0 {
		return architecture{}, fmt.Errorf("config.json: architectures is missing or empty")
	}
	table := architectures()
	i := slices.IndexFunc(table, func(a architecture) bool { return a.name == names[0] })
	if i >= 0 {
		return table[i], nil
	}
	known := make([]string, len(table))
	for i, a := range table {
		known[i] = a.name
	}
	return architecture{}, fmt.Errorf("config.json: architecture %.100q is not supported; the nearest that are: %s", names[0], strings.Join(near.List(names[0], known, 3), ", "))
}
