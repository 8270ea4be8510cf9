package launch

import (
	"log/slog"
	"strings"
	"testing"

	"roundhouse/worker/model"
)

// TestParsersByModel has the parsers that models get where no flag names one,
// by their chat templates.
func TestParsersByModel(t *testing.T) {
	f := func(args, architecture, template, tools, reasoning string) {
		t.Helper()
		o, err := ParseServe(strings.Fields(args), noEnv)
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		err = o.chooseParsers(model.Config{Architecture: architecture}, &textFiles{source: template}, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		if o.toolParser() != tools || o.reasoningParser() != reasoning {
			t.Errorf("%s %s: parsers %q and %q; want %q and %q", args, template, o.toolParser(), o.reasoningParser(), tools, reasoning)
		}
		if told := strings.Contains(log.String(), "parsers chosen by the model"); told != (!strings.Contains(args, "tool-call-parser") && tools+reasoning != "") {
			t.Errorf("%s %s: the log is %q", args, template, log.String())
		}
	}
	f("", "", "{{ messages }}", "", "")
	f("", "", "<tool_call>{name} {% if '</think>' in content %}", "hermes", "qwen3")
	f("", "", "<tool_call>\n<function=f>\n</think>", "qwen3_coder", "qwen3")
	f("", "", "<seed:tool_call><function=f></seed:think><seed:think>", "seed_oss", "seed_oss")
	f("", "", "<tool_call>{name}\n<arg_key>k</arg_key></think>", "glm45", "glm45")
	f("", "", "<tool_calls>[]</tool_calls><think></think><answer>", "hunyuan_a13b", "hunyuan_a13b")
	f("", "", "<｜tool▁calls▁begin｜><｜tool▁sep｜>name\n```json\n</think>", "deepseek_v3", "qwen3")
	f("", "", "<｜tool▁calls▁begin｜>name<｜tool▁sep｜></think>", "deepseek_v31", "qwen3")
	f("", "", "[AVAILABLE_TOOLS][TOOL_CALLS]", "mistral", "")
	f("", "", `<|start_header_id|>{"name": "f", "parameters": {}}`, "llama3_json", "")
	f("", "GptOssForCausalLM", "<|channel|>", "openai", "openai_gptoss")
	f("--tool-call-parser none --reasoning-parser none", "", "<tool_call></think>", "", "")
	f("--tool-call-parser pythonic --reasoning-parser deepseek_r1", "", "<tool_call></think>", "", "deepseek_r1")
	f("--tool-call-parser pythonic --enable-auto-tool-choice --reasoning-parser none", "", "<tool_call></think>", "pythonic", "")
	f("--enable-auto-tool-choice --reasoning-parser none", "", "<tool_call></think>", "hermes", "")

	o, err := ParseServe([]string{"--enable-auto-tool-choice"}, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.chooseParsers(model.Config{}, &textFiles{source: "x"}, quiet); err == nil || !strings.Contains(err.Error(), "requires --tool-call-parser") {
		t.Errorf("a template without calls: %v", err)
	}
}
