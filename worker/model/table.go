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
	Tested       string // golden files of worker/model/testdata
}

// Supported lists the architectures.
func Supported() []Support {
	var list []Support
	for _, a := range architectures() {
		list = append(list, Support{Architecture: a.name, Families: a.families, Kind: a.kind, Features: a.features,
			Formats: a.formats(), Quants: strings.Join(a.quants, ", "), Tested: a.golden()})
	}
	return list
}

// golden names the golden files of an architecture.
func (a architecture) golden() string {
	names := a.fixture + ".json"
	if a.embeds != "" && a.embeds != a.fixture {
		names += ", " + a.embeds + ".json"
	}
	if a.gguf != "" {
		names += ", gguf_" + a.gguf + ".json"
	}
	return names
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

// Table is docs/models.md, which a test holds to the code.
func Table() string {
	var b strings.Builder
	b.WriteString(tableHead)
	for _, s := range Supported() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", s.Architecture, s.Families, s.Kind, s.Formats, s.Quants, s.Features, s.Tested)
	}
	b.WriteString(tableFoot)
	return b.String()
}

const tableHead = `# Models

What ` + "`roundhouse-worker`" + ` serves. This page is written by the code: ` + "`go test ./worker/model -run TestTable -update`" + `.

An architecture is in the table if its logits, at every position of a sequence that passes its window and several pages, agree with
Hugging Face transformers within 1e-4 of the greatest (float32, reference backend), and if each setting that is named moves them as it
moves the reference. The golden files lie in ` + "`worker/model/testdata`" + `, with the program that made them. Anything else is refused at
start, with the names of the nearest architectures.

| architecture | models | kind | files | quantised checkpoints | covered by the golden test | golden file |
|---|---|---|---|---|---|---|
`

const tableFoot = `
## Files

- safetensors, one file or shards under an index; tensors in F32, F16 or BF16. Files are mapped, checked before a byte of them is used,
  and refused if they change while they are read. A weight that is not finite is refused by name.
- GGUF, one file (` + "`--model FILE.gguf`" + `), versions 2 and 3: tensors in F32, F16, BF16, Q8_0, Q4_0, Q4_K or Q6_K; the tokenizer and the chat
  template in the file are used (byte-level BPE with the pre-tokenizers default, gpt-2, smollm, llama-bpe, qwen2, deepseek-r1-qwen and
  tekken; SentencePiece's BPE). Split files, big-endian ones, other types and keys that are not known are refused by name.
- Pickled checkpoints (.bin, .pt, .pth, .ckpt) are never read.
- Embedding models are described by the files of sentence-transformers: modules.json (Transformer, Pooling, Normalize), pooling by the
  first token, the mean or the last token, prompts, the longest text. Without them an encoder gives its first token, normalised.
- ` + "`dimensions`" + ` cuts a vector where config.json, or ` + "`--hf-overrides`" + `, says is_matryoshka or lists matryoshka_dimensions; ` + "`prompt_name`" + ` puts one of
  the model's prompts before a text. Vectors come as numbers or in base64.
- Qwen3-Reranker as it is published (a model that generates) is served with ` + "`--task score`" + `, or with vLLM's ` + "`--hf-overrides`" + `: its score is the
  chance of "yes" against "no". Its prompt, with the request's ` + "`instruction`" + `, is written by the worker; a query that begins with
  <|im_start|> is taken as a prompt that the client has written.
- ` + "`generation_config.json`" + ` gives end-of-sequence tokens and the sampling that a request leaves out.

## Adapters

` + "`--enable-lora`" + ` serves PEFT's LoRA adapters beside a model that generates, under names of their own (` + "`--lora-modules name=path`" + ` or JSON, and
` + "`/v1/load_lora_adapter`" + ` where VLLM_ALLOW_RUNTIME_LORA_UPDATING is set): ranks to 256, rank-stabilised ones, ranks and factors by pattern, over a model in
any format. They correct the linears of attention and MLP (q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, gate_up_proj, down_proj), those of
shared experts too; not routed experts, latent attention, the gated delta rule and its neighbours' q_proj, embeddings or the head. An adapter with
weights for those, with DoRA, biases or modules of its own, or whose training changed the model (PiSSA and its like) is refused by name. The golden file
lora.json has PEFT's logits: with operands rounded to bfloat16, as they are here, ours are within 3e-3 of the greatest; as PEFT computes, in float32, within 2e-2.
All adapters that are loaded lie in memory at once, in as many slots as the greatest of ` + "`--max-loras`" + `, ` + "`--max-cpu-loras`" + ` and the number of ` + "`--lora-modules`" + `.

## Tools and reasoning

Parsers have vLLM's names. Where no flag names one, the chat template tells which the model needs, and the start says it; ` + "`--tool-call-parser none`" + ` and
` + "`--reasoning-parser none`" + ` leave an answer as the model wrote it.

| models | tools | reasoning |
|---|---|---|
| Qwen2.5, Qwen3, QwQ, Qwen3-Next | hermes | qwen3 (what stands between <think> and </think>, also where the prompt has begun it) |
| Qwen3-Coder, Qwen3.5, Qwen3.6 | qwen3_coder, qwen3_xml | qwen3 |
| DeepSeek-R1 and its distillates | deepseek_v3 | qwen3 by itself; deepseek_r1 where neither prompt nor answer begins it |
| DeepSeek-V3.1 | deepseek_v31 | deepseek_v3 |
| gpt-oss | openai | openai_gptoss |
| GLM-4.5, GLM-4.6, GLM-4.7 | glm45, glm47 | glm45, glm47 |
| Seed-OSS | seed_oss | seed_oss |
| Hunyuan | hunyuan_a13b | hunyuan_a13b |
| Llama 3.x | llama3_json, pythonic | |
| Mistral, Ministral | mistral | |
| Kimi-K2, Granite 3, ERNIE 4.5 (not served; for models that write as they do) | kimi_k2, granite, ernie45 | kimi_k2 |

gpt-oss answers in channels: analysis is the reasoning, final and commentary to nobody the content, what goes to functions.NAME a call. Its marks count where they are tokens, not
where a text spells them; <|call|> and <|return|> end an answer. An answer that is held to a form, or that must call tools, is written without channels and without reasoning.
worker/parser/testdata/vectors.json has what vLLM's own parsers say of outputs of ours; ours say the same, however an output is cut. For the channels, which vLLM reads with a vocabulary
that is downloaded, the outputs are ours alone. What looks like a call and is none is content; vLLM drops some of it.

## Answers in a form

An answer that is held to a JSON schema is valid by it; a validator of others judges what is drawn in the tests (worker/grammar/testdata/schemas.txt). Enforced are
type, enum, const, properties, required, additionalProperties, propertyNames, patternProperties, minProperties, maxProperties, dependentRequired, dependentSchemas,
items, prefixItems, minItems, maxItems, minLength, maxLength, pattern and the formats date, time, date-time, uuid, ipv4 and email (also with lengths), minimum, maximum and their
exclusive forms, multipleOf, anyOf, allOf, ` + "`$ref`" + ` within the schema (also beside other keywords), nullable. Properties come in the schema's order; where additionalProperties is
absent beside properties or patternProperties, there are no others. As in vLLM some keywords are taken whose every form a grammar cannot hold to; clients that need these check the answer:

- oneOf is anyOf: that a value fits one alone is not enforced.
- uniqueItems is enforced where the items are at most 10 listed values or booleans.
- minProperties counts a name that the model writes twice as two.
- not is enforced for types, listed values, and strings by pattern or length; if, then and else where if asks one property for listed values.
- multipleOf of whole numbers is enforced, and 0.1, 0.01 and so on; other fractions are not.
- unevaluatedProperties, a ` + "`$ref`" + ` to another document, formats that are not named above and keywords that the standard does not know say nothing.
- contains, unevaluatedItems and ` + "`$dynamicRef`" + ` are refused with 400, and so is what no value can meet.

## Left out

Baichuan2 and CodeGeeX4: transformers has no class of theirs, so that there is no reference to hold an implementation to. RoPE of type
longrope: no architecture of the table has it. RoPE of type dynamic without alpha has one base, that of the longest sequence, as in vLLM.

## Quantisation

Checkpoints that are quantised already: GPTQ (4 bits, groups of 32, 64 or a multiple of 128, with act-order but for experts), AWQ (4 bits,
gemm, the same groups), fp8 (e4m3, scales by tensor, row or block), compressed-tensors (fp8; int4 symmetric by group), and MXFP4 for
gpt-oss. Their codes are kept as they are, except that on OpenCL groups of 32 and 64 become int8, one scale a row, and that fp8 can be turned into
the formats below; activations are not rounded to fp8. The golden tests are ` + "`quantised.json`, `quantised_groups.json` and `quantised_experts.json`" + `.

Weights can be kept as float32, bfloat16, float16, int8, sym_int4 (groups of 128) or fp8 (e4m3), quantised while they are read. Embeddings
keep 16 bits, routers and norms 32; the head, and with it a tied embedding, is int8 under sym_int4, int8 and fp8 (` + "`--head-dtype bfloat16`" + `: 16 bits). A matrix whose columns are no multiple of 128 stays in 16 bits under sym_int4.

GGUF's blocks are decoded exactly (the golden tests hold them to the package gguf) and turned into the format asked for. On CPUs matrices in Q4_0 stay
as they are, four bits and a scale for each 32 columns, unless float32, int8 or fp8 is asked for. Where no format is, other matrices of blocks, and on OpenCL those
in Q4_0, are kept as int8, one scale a row: sixteen bits would take two to four times the memory and the time of a token, and rounding a row to int8 adds
a tenth of the error that four bits have already made.
` + "`--dtype float32`" + ` keeps them exactly.
`
