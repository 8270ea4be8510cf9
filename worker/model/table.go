package model

import (
	"fmt"
	"io"
	"strings"
)

// Support is one architecture of the table.
type Support struct {
	Architecture string // as config.json has it
	Families     string // what people know it by
	Kind         Kind
	Features     string // what its golden test covers
	Formats      string // of files
	Quants       string // quantised checkpoints that it reads
	Images       string // whether a model that sees does so here; "": it does not see
}

// Supported lists the architectures.
func Supported() []Support {
	var list []Support
	for _, a := range architectures() {
		list = append(list, Support{Architecture: a.name, Families: a.families, Kind: a.kind, Features: a.features,
			Formats: a.formats(), Quants: strings.Join(a.quants, ", "), Images: a.images()})
	}
	return list
}

// images tells what becomes of images.
func (a architecture) images() string {
	switch {
	case a.tower != nil:
		return "images"
	case a.seeing:
		return "text only, no images"
	}
	return ""
}

// formats names the formats of files that an architecture is read from.
func (a architecture) formats() string {
	if a.gguf != "" {
		return "safetensors, GGUF"
	}
	return "safetensors"
}

// WriteTable writes the architectures for a terminal.
func WriteTable(w io.Writer) error {
	rows := [][]string{{"ARCHITECTURE", "KIND", "FORMATS", "QUANTISED", "MODELS", "TESTED"}}
	for _, s := range Supported() {
		rows = append(rows, []string{s.Architecture, s.Kind.String(), s.Formats, s.Quants, s.Families, s.Features})
	}
	_, err := io.WriteString(w, columns(rows))
	return err
}

// notes tells in how far an architecture differs from most others of the page.
func (s Support) notes() string {
	var notes []string
	if s.Kind != Generate {
		notes = append(notes, s.Kind.String())
	}
	if s.Formats != "safetensors" {
		notes = append(notes, "GGUF")
	}
	if s.Quants == "" {
		notes = append(notes, "none quantised")
	} else if s.Quants != strings.Join(linearQuants(), ", ") {
		notes = append(notes, s.Quants+" alone")
	}
	if s.Images != "" {
		notes = append(notes, s.Images)
	}
	return strings.Join(notes, "; ")
}

// Table is docs/models.md, which a test holds to the code.
func Table() string {
	var b strings.Builder
	b.WriteString(tableHead)
	for _, s := range Supported() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.Architecture, s.Families, s.notes())
	}
	b.WriteString(tableFoot)
	return b.String()
}

const tableHead = `# Models

Served by ` + "`" + `roundhouse-worker` + "`" + `. This page is written by the code: ` + "`" + `go test ./worker/model -run TestTable -update` + "`" + `.

An architecture is in the table if its logits, at every position of a sequence beyond its window and several pages, agree with Hugging Face transformers within
1e-4 of the greatest (float32, reference backend), and if each named setting moves them alike (` + "`" + `worker/model/testdata` + "`" + `; ` + "`" + `roundhouse-worker models` + "`" + ` tells what
the tests cover). Anything else is refused at start, with the nearest architectures. Unless a note tells otherwise an architecture generates and is read from
safetensors, also quantised by gptq, awq, fp8 or compressed-tensors.

| architecture | models | notes |
|---|---|---|
`

const tableFoot = `
Left out: Baichuan2 and CodeGeeX4 (transformers has no class to compare with); RoPE of type longrope. Dynamic RoPE without alpha has the longest sequence's base,
as in vLLM.

## Files

- safetensors, one file or shards under an index; F32, F16 or BF16; refused if they change while they are read or hold a weight that is not finite.
- GGUF (` + "`" + `--model FILE.gguf` + "`" + `; of several files the first, ` + "`" + `NAME-00001-of-0000N.gguf` + "`" + `), versions 2 and 3: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1,
  Q2_K to Q6_K, IQ4_NL or IQ4_XS, with its tokenizer and chat template (byte-level BPE with the pre-tokenizers default, gpt-2, smollm, llama-bpe, qwen2,
  deepseek-r1-qwen and tekken; SentencePiece's BPE). Big-endian files, other types and unknown keys are refused by name.
- Pickled checkpoints (.bin, .pt, .pth, .ckpt) are never read.
- Embedding models by sentence-transformers' files: modules.json (Transformer, Pooling, Normalize), pooling by first token, mean or last token, prompts, the
  longest text. Without them: the first token, normalised. ` + "`" + `dimensions` + "`" + ` cuts a vector if config.json, or ` + "`" + `--hf-overrides` + "`" + `, has is_matryoshka or
  matryoshka_dimensions; ` + "`" + `prompt_name` + "`" + ` puts a prompt of the model's before a text.
- Qwen3-Reranker as published is served with ` + "`" + `--task score` + "`" + ` or vLLM's ` + "`" + `--hf-overrides` + "`" + `: the chance of "yes" against "no". The worker writes its prompt with
  the request's ` + "`" + `instruction` + "`" + `; a query that begins with <|im_start|> is a prompt that the client has written.
- ` + "`" + `generation_config.json` + "`" + ` gives end-of-sequence tokens and default sampling.

## Quantisation

Read are GPTQ (4 bits, groups of 32, 64 or a multiple of 128, act-order but for experts), AWQ (4 bits, gemm, the same groups), fp8 (e4m3, scales by tensor, row
or block), compressed-tensors (fp8; int4 symmetric by group), MXFP4 for gpt-oss. Other weights can be kept as float32, bfloat16, float16, int8, sym_int4 (groups
of 128) or fp8, quantised while they are read; so can fp8 checkpoints. [kernels.md](kernels.md#formats) tells how each is kept.

GGUF's blocks are decoded exactly and turned into the chosen format; ` + "`" + `--dtype float32` + "`" + ` keeps them exact. By default Q4_0 stays four bits on CPUs, and other
blocks, on OpenCL Q4_0 too, become int8, one scale a row: a tenth of the error that four bits have made, for half or less of sixteen bits' memory.

## Tools and reasoning

Parsers have vLLM's names and, however an output is cut, its results (` + "`" + `worker/parser/testdata/vectors.json` + "`" + `; channels are ours alone). Without a flag the chat
template chooses, and the start names the choice; ` + "`" + `--tool-call-parser none` + "`" + ` and ` + "`" + `--reasoning-parser none` + "`" + ` leave the model's text. Text that looks like a call
and is none is content; vLLM drops some of it.

| models | tools | reasoning |
|---|---|---|
| Qwen2.5, Qwen3, QwQ, Qwen3-Next | hermes | qwen3 ([how](api.md#reasoning-that-nothing-began)) |
| Qwen3-Coder, Qwen3.5, Qwen3.6 | qwen3_coder, qwen3_xml | qwen3 |
| DeepSeek-R1 and its distillates | deepseek_v3 | qwen3 by itself; deepseek_r1 where neither prompt nor answer begins it |
| DeepSeek-V3.1 | deepseek_v31 | deepseek_v3 |
| gpt-oss | openai | openai_gptoss |
| GLM-4.5, GLM-4.6, GLM-4.7 | glm45, glm47 | glm45, glm47 |
| Seed-OSS, Hunyuan | seed_oss, hunyuan_a13b | seed_oss, hunyuan_a13b |
| Llama 3.x | llama3_json, pythonic | |
| Mistral, Ministral | mistral | |
| Kimi-K2, Granite 3, ERNIE 4.5 (not served; for models that write as they do) | kimi_k2, granite, ernie45 | kimi_k2, ernie45 |

gpt-oss answers in channels: analysis is the reasoning, final and commentary to nobody the content, text to functions.NAME a call. An answer held to a form, or
that must call tools, has no channels and no reasoning.

## Adapters

` + "`" + `--enable-lora` + "`" + ` serves PEFT's LoRA adapters beside a model that generates, under their own names (` + "`" + `--lora-modules name=path` + "`" + ` or JSON; ` + "`" + `/v1/load_lora_adapter` + "`" + `
with VLLM_ALLOW_RUNTIME_LORA_UPDATING): ranks to 256, rank-stabilised, ranks and factors by pattern, over any format, for the linears of attention, MLP and shared
experts. Refused by name: weights for routed experts, latent attention, the gated delta rule and its neighbours' q_proj, embeddings or the head; DoRA, biases,
modules of its own; training that changed the model (PiSSA and its like). Against PEFT's logits ours are within 3e-3 of the greatest with operands in bfloat16, as
here, within 2e-2 of float32. As many lie in memory at once as the greatest of ` + "`" + `--max-loras` + "`" + `, ` + "`" + `--max-cpu-loras` + "`" + ` and the number of ` + "`" + `--lora-modules` + "`" + `.

## Answers in a form

An answer held to a JSON schema is valid by it, as another validator judges; properties come in the schema's order, and without additionalProperties beside
properties or patternProperties there are no others. Keywords of JSON Schema 2020-12 hold but for these; clients that need them check the answer:

- oneOf is anyOf: that a value fits only one is not enforced.
- format: date, time, date-time, uuid, ipv4 and email hold.
- uniqueItems: at most 10 listed values or booleans. minProperties counts a name written twice as two.
- not: types, listed values, strings by pattern or length; if, then and else: an if that asks one property for listed values.
- multipleOf: whole numbers, 0.1, 0.01 and so on; no other fractions.
- unevaluatedProperties, a ` + "`" + `$ref` + "`" + ` to another document, other formats and non-standard keywords (but for nullable) are ignored.
- contains (with its bounds), unevaluatedItems, ` + "`" + `$dynamicRef` + "`" + `, and a schema that no value can meet are 400.

` + "`" + `structured_outputs.grammar` + "`" + ` is EBNF, with ` + "`" + `::=` + "`" + ` and the rule root, or else Lark, with the rule start; rules may begin with themselves, but not behind a part
that may be empty. Of Lark, refused with 400 are templates, priorities, special tokens (` + "`" + `<name>` + "`" + `), named grammars (` + "`" + `@name` + "`" + `), ` + "`" + `%regex` + "`" + `, ` + "`" + `%declare` + "`" + `, attributes of
rules and flags of regular expressions beside i, s and u.

A structural tag is ` + "`" + `response_format` + "`" + ` of type structural_tag, with ` + "`" + `format` + "`" + ` or in the older form with ` + "`" + `structures` + "`" + ` and ` + "`" + `triggers` + "`" + `, or a string of that JSON as
` + "`" + `structured_outputs.structural_tag` + "`" + `. Refused with 400, where vLLM takes them: formats of tokens (token, any_tokens, token_triggered_tags and their like), tags
that begin or end with a token, ` + "`" + `max_tokens` + "`" + ` (` + "`" + `max_chars` + "`" + ` is taken), and of json_schema any_order, excludes and the styles of XML. Of more than 200 grammars and
tags ours accept the same texts as xgrammar (` + "`" + `worker/grammar/testdata/acceptance.json` + "`" + `).
`
