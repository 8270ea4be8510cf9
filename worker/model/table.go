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

Served by ` + "`roundhouse-worker`" + `. This page is written by the code: ` + "`go test ./worker/model -run TestTable -update`" + `.

An architecture is in the table if its logits, at every position of a sequence beyond its window and several pages, agree with Hugging Face transformers
within 1e-4 of the greatest (float32, reference backend), and if each named setting moves them alike. The golden files lie in ` + "`worker/model/testdata`" + `, with
their program. Anything else is refused at start, with the nearest architectures.

| architecture | models | kind | files | quantised checkpoints | covered by the golden test | golden file |
|---|---|---|---|---|---|---|
`

const tableFoot = `
## Files

- safetensors, one file or shards under an index; F32, F16 or BF16. Files are mapped and checked before use, and refused if they change while they are read or
  hold a weight that is not finite.
- GGUF (` + "`--model FILE.gguf`" + `; of several files the first, ` + "`NAME-00001-of-0000N.gguf`" + `), versions 2 and 3: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1,
  Q2_K to Q6_K, IQ4_NL or IQ4_XS, with its tokenizer and chat template (byte-level BPE with the pre-tokenizers default, gpt-2, smollm, llama-bpe, qwen2,
  deepseek-r1-qwen and tekken; SentencePiece's BPE). Big-endian files, other types and unknown keys are refused by name.
- Pickled checkpoints (.bin, .pt, .pth, .ckpt) are never read.
- Embedding models by sentence-transformers' files: modules.json (Transformer, Pooling, Normalize), pooling by first token, mean or last token, prompts, the
  longest text. Without them: the first token, normalised.
- ` + "`dimensions`" + ` cuts a vector if config.json, or ` + "`--hf-overrides`" + `, has is_matryoshka or matryoshka_dimensions; ` + "`prompt_name`" + ` puts a prompt of the model's
  before a text. Vectors come as numbers or in base64.
- Qwen3-Reranker as published is served with ` + "`--task score`" + ` or vLLM's ` + "`--hf-overrides`" + `: the chance of "yes" against "no". The worker writes its prompt with
  the request's ` + "`instruction`" + `; a query that begins with <|im_start|> is a prompt that the client has written.
- ` + "`generation_config.json`" + ` gives end-of-sequence tokens and default sampling.

## Tools and reasoning

Parsers have vLLM's names. Without a flag the chat template chooses, and the start names the choice; ` + "`--tool-call-parser none`" + ` and ` + "`--reasoning-parser none`" + `
leave the model's text.

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
| Kimi-K2, Granite 3, ERNIE 4.5 (not served; for models that write as they do) | kimi_k2, granite, ernie45 | kimi_k2, ernie45 |

gpt-oss answers in channels: analysis is the reasoning, final and commentary to nobody the content, text to functions.NAME a call. Its marks count as tokens
only; <|call|> and <|return|> end an answer. An answer held to a form, or that must call tools, has no channels and no reasoning.
worker/parser/testdata/vectors.json has the results of vLLM's parsers (channels: ours alone, since vLLM downloads a vocabulary); ours agree, however an output
is cut. Text that looks like a call and is none is content; vLLM drops some of it.

## Adapters

` + "`--enable-lora`" + ` serves PEFT's LoRA adapters beside a model that generates, under their own names (` + "`--lora-modules name=path`" + ` or JSON; ` + "`/v1/load_lora_adapter`" + `
with VLLM_ALLOW_RUNTIME_LORA_UPDATING): ranks to 256, rank-stabilised, ranks and factors by pattern, over any format. They correct the linears of attention,
MLP and shared experts (q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, gate_up_proj, down_proj). Refused by name: weights for routed experts, latent
attention, the gated delta rule and its neighbours' q_proj, embeddings or the head; DoRA, biases, modules of its own; training that changed the model (PiSSA
and its like). Against PEFT's logits (lora.json) ours are within 3e-3 of the greatest with operands in bfloat16, as here, within 2e-2 of float32. Loaded
adapters lie in memory at once: as many slots as the greatest of ` + "`--max-loras`" + `, ` + "`--max-cpu-loras`" + ` and the number of ` + "`--lora-modules`" + `.

## Answers in a form

An answer held to a JSON schema is valid by it; another validator judges the tests' answers (worker/grammar/testdata/schemas.txt). Enforced: type, enum,
const, properties, required, additionalProperties, propertyNames, patternProperties, minProperties, maxProperties, dependentRequired, dependentSchemas, items,
prefixItems, minItems, maxItems, minLength, maxLength, pattern, the formats date, time, date-time, uuid, ipv4 and email (also with lengths), minimum, maximum
and their exclusive forms, multipleOf, anyOf, allOf, ` + "`$ref`" + ` within the schema (also beside other keywords), nullable. Properties come in the schema's order;
without additionalProperties beside properties or patternProperties there are no others. As in vLLM, some keywords are accepted beyond what a grammar can
hold; clients that need these check the answer:

- oneOf is anyOf: that a value fits only one is not enforced.
- uniqueItems: at most 10 listed values or booleans.
- minProperties counts a name written twice as two.
- not: types, listed values, strings by pattern or length; if, then and else: an if that asks one property for listed values.
- multipleOf: whole numbers, 0.1, 0.01 and so on; no other fractions.
- unevaluatedProperties, a ` + "`$ref`" + ` to another document, other formats and non-standard keywords are ignored.
- contains, unevaluatedItems, ` + "`$dynamicRef`" + `, and a schema that no value can meet are 400.

` + "`" + `structured_outputs.grammar` + "`" + ` is EBNF, with ` + "`" + `::=` + "`" + ` and the rule root, or else Lark, with the rule start; rules may begin with themselves (` + "`" + `sum: sum "+" n | n` + "`" + `), but
not behind a part that may be empty. Of Lark there are rules, terminals, strings (also ` + "`" + `"a"i` + "`" + ` and ` + "`" + `"a".."z"` + "`" + `), regular expressions with the flags i, s and u, ` + "`" + `? * + ~n ~n..m {n,m}` + "`" + `,
groups, ` + "`" + `[ ]` + "`" + `, ` + "`" + `->` + "`" + `, ` + "`" + `%ignore` + "`" + `, ` + "`" + `%import common` + "`" + `, ` + "`" + `%json` + "`" + `, ` + "`" + `%lark` + "`" + ` and ` + "`" + `%grammar_options` + "`" + `, as vLLM's xgrammar has them. Templates, priorities, special tokens (` + "`" + `<name>` + "`" + `),
named grammars (` + "`" + `@name` + "`" + `), ` + "`" + `%regex` + "`" + `, ` + "`" + `%declare` + "`" + ` and attributes of rules are refused with 400.

A structural tag is ` + "`" + `response_format` + "`" + ` of type structural_tag, with ` + "`" + `format` + "`" + ` or in the older form with ` + "`" + `structures` + "`" + ` and ` + "`" + `triggers` + "`" + `, or ` + "`" + `structured_outputs.structural_tag` + "`" + `, a
string with the same JSON. Enforced are const_string, json_schema, regex, grammar (EBNF), any_text, sequence, or, tag, triggered_tags, tags_with_separator, optional, star,
plus, repeat and dispatch. Formats of tokens (token, any_tokens, token_triggered_tags and their like), tags that begin or end with a token, ` + "`" + `max_tokens` + "`" + ` (` + "`" + `max_chars` + "`" + ` is
taken), and of json_schema any_order, excludes and the styles of XML are refused with 400: vLLM takes these.
worker/grammar/testdata/acceptance.json has which texts xgrammar accepts for more than 200 grammars and tags; ours accept the same.

## Left out

Baichuan2 and CodeGeeX4: transformers has no class to compare with. RoPE of type longrope: no architecture of the table has it. Dynamic RoPE without alpha has
the longest sequence's base, as in vLLM.

## Quantisation

Quantised checkpoints: GPTQ (4 bits, groups of 32, 64 or a multiple of 128, act-order but for experts), AWQ (4 bits, gemm, the same groups), fp8 (e4m3, scales
by tensor, row or block), compressed-tensors (fp8; int4 symmetric by group), MXFP4 for gpt-oss. Codes stay as they are, except that OpenCL keeps groups of 32
and 64 as int8, one scale a row, and that fp8 can become the formats below. Golden tests: ` + "`quantised.json`" + `, ` + "`quantised_groups.json`" + `, ` + "`quantised_experts.json`" + `.

Weights can be kept as float32, bfloat16, float16, int8, sym_int4 (groups of 128) or fp8 (e4m3), quantised while they are read. Embeddings keep 16 bits,
routers and norms 32; the head, with a tied embedding, is int8 under sym_int4, int8 and fp8 (` + "`--head-dtype bfloat16`" + `: 16 bits). Under sym_int4 a matrix whose
columns are no multiple of 128 stays in 16 bits.

GGUF's blocks are decoded exactly and turned into the chosen format; ` + "`--dtype float32`" + ` keeps them exact. By default Q4_0 stays four bits on CPUs (unless
float32, int8 or fp8 is chosen), and other blocks, on OpenCL Q4_0 too, become int8, one scale a row: a tenth of the error that four bits have made, for half
or less of sixteen bits' memory.
`
