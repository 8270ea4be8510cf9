package launch

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"roundhouse/worker/model"
	"roundhouse/worker/parser"
	"roundhouse/worker/tokenizer"
)

// noParser is what a flag says to have none, where the model would have one.
const noParser = "none"

// toolParser is the parser that reads calls which the model makes of its own
// accord: the one that a flag names where calls are turned on, and the model's
// own where no flag says anything.
func (o *Options) toolParser() string {
	if o.ToolParser == noParser || o.ToolParser != "" && !o.AutoTools && !o.toolsChosen {
		return ""
	}
	return o.ToolParser
}

func (o *Options) reasoningParser() string {
	if o.ReasoningParser == noParser {
		return ""
	}
	return o.ReasoningParser
}

// notation is what in a chat template tells how the model writes, and the
// parser that reads it. The first that is found counts.
type notation struct {
	sign   string // in the template
	beside string // what must be there as well; "": nothing
	parser string
}

var toolNotations = []notation{
	{"<seed:tool_call>", "", "seed_oss"},
	{"<arg_key>", "", "glm45"},
	{"<|tool_calls_section_begin|>", "", "kimi_k2"},
	{"<function=", "", "qwen3_coder"},
	{"```json", "<｜tool▁calls▁begin｜>", "deepseek_v3"},
	{"<｜tool▁calls▁begin｜>", "", "deepseek_v31"},
	{"<tool_calls>", "", "hunyuan_a13b"},
	{"<tool_call>", "", "hermes"},
	{"[TOOL_CALLS]", "", "mistral"},
	{`"parameters": `, "<|start_header_id|>", "llama3_json"},
}

var thoughtNotations = []notation{
	{"<seed:think>", "", "seed_oss"},
	{"<arg_key>", "</think>", "glm45"},
	{"<answer>", "</think>", "hunyuan_a13b"},
	{"</think>", "", "qwen3"},
	{"<think>", "", "qwen3"},
}

// chosen is the parser whose notation a template has; "": none.
func chosen(list []notation, template string) string {
	for _, n := range list {
		if strings.Contains(template, n.sign) && strings.Contains(template, n.beside) {
			return n.parser
		}
	}
	return ""
}

// chooseParsers takes the model's own parsers where no flag names one, and says
// so.
func (o *Options) chooseParsers(cfg model.Config, w *textFiles, log *slog.Logger) error {
	if cfg.Kind != model.Generate {
		return nil
	}
	tools, thoughts := chosen(toolNotations, w.source), chosen(thoughtNotations, w.source)
	if strings.HasPrefix(cfg.Architecture, "GptOss") {
		tools, thoughts = "openai", "openai_gptoss"
	}
	if o.AutoTools && o.ToolParser == "" && tools == "" {
		return fmt.Errorf("--enable-auto-tool-choice requires --tool-call-parser: the chat template does not tell how this model writes calls; known are %s", strings.Join(parser.ToolNames(), ", "))
	}
	var said []any
	if o.ToolParser == "" && tools != "" {
		o.ToolParser, o.toolsChosen = tools, true
		said = append(said, "--tool-call-parser", tools)
	}
	if o.ReasoningParser == "" && thoughts != "" {
		o.ReasoningParser = thoughts
		said = append(said, "--reasoning-parser", thoughts)
	}
	if said != nil {
		log.Info("parsers chosen by the model; a flag with another name, or none, stands above", said...)
	}
	return nil
}

// ends are the tokens that end an answer. An answer in channels ends with its
// marks, whatever the model's files say.
func ends(o *Options, cfg model.Config, t *tokenizer.Tokenizer) []int32 {
	out := slices.Clone(cfg.EOS)
	if !parser.Channels(o.reasoningParser(), o.toolParser()) {
		return out
	}
	for _, name := range []string{"<|return|>", "<|call|>"} {
		if id, ok := t.TokenID(name); ok && t.IsSpecial(id) && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}
