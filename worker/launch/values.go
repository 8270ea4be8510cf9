package launch

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"roundhouse/worker/profile"
)

// units are the suffixes of numbers: small ones decimal, large ones binary.
var units = map[byte]int64{'k': 1e3, 'K': 1 << 10, 'm': 1e6, 'M': 1 << 20, 'g': 1e9, 'G': 1 << 30, 't': 1e12, 'T': 1 << 40}

// count reads a whole number as vLLM's users write it: 8192, 8k, 25.6k, 8K.
func count(v string) (int64, error) {
	v = strings.TrimSpace(v)
	unit := int64(1)
	if v != "" && units[v[len(v)-1]] != 0 {
		unit, v = units[v[len(v)-1]], v[:len(v)-1]
	}
	if n, err := strconv.ParseInt(v, 10, 64); err == nil {
		if p := n * unit; p/unit == n {
			return p, nil
		}
		return 0, strconv.ErrRange
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || unit == 1 || unit&(unit-1) == 0 || !(f*float64(unit) < 1<<62 && f > -1<<20) {
		return 0, strconv.ErrSyntax
	}
	return int64(f * float64(unit)), nil
}

// length reads a context length: a number, -1 or auto.
func length(o *Options, v string) error {
	if v == "auto" || v == "-1" {
		o.MaxModelLen = -1
		return nil
	}
	n, err := count(v)
	if err != nil || n < 1 || n > 1<<30 {
		return fmt.Errorf("%q; want a number of tokens, -1 or auto", v)
	}
	o.MaxModelLen = int(n)
	return nil
}

// quantization takes vLLM's names of what the checkpoint is, and the formats
// that weights are turned into.
func quantization(o *Options, v string) error {
	v = strings.ToLower(v)
	v = strings.TrimSuffix(v, "_marlin")
	names := []string{"auto", "none", "fp8", "sym_int4", "int8", "gptq", "awq", "compressed-tensors", "mxfp4", "gguf"}
	return oneOf(func(o *Options) *string { return &o.Quantization }, names...)(o, v)
}

// deviceID is the GPU of --device-ids: one, by its number or UUID.
func deviceID(o *Options, v string) error {
	if strings.Contains(v, ",") {
		return fmt.Errorf("%q are several; a worker has one device, start more workers instead", v)
	}
	o.Device = "xpu:" + strings.TrimSpace(v)
	return nil
}

func speculative(o *Options, v string) error {
	s := Speculative{Max: 5, Min: 2}
	if err := json.Unmarshal([]byte(v), &s); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	if err := specMethod(o, s.Method); err != nil {
		return err
	}
	o.Speculative = s
	return nil
}

func specMethod(o *Options, v string) error {
	if v != "ngram" && v != "[ngram]" {
		return fmt.Errorf("the method %q is not supported; want ngram, or leave the flag out: answers are the same without", v)
	}
	o.Speculative.Method = v
	if o.Speculative.Max == 0 {
		o.Speculative.Min, o.Speculative.Max = 2, 5
	}
	return nil
}

// check compares what is said of speculation with itself.
func (s *Speculative) check() error {
	if *s == (Speculative{}) {
		return nil
	}
	if s.Method == "" {
		return fmt.Errorf("--spec-tokens needs --spec-method ngram")
	}
	if s.Tokens < 1 || s.Tokens > 16 || s.Min < 1 || s.Max < s.Min {
		return fmt.Errorf("--speculative-config: want num_speculative_tokens from 1 to 16 and prompt_lookup_min ≤ prompt_lookup_max")
	}
	return nil
}

// structuredOutputs reads --structured-outputs-config, of which only the
// parser of reasoning and compact JSON make a difference here.
func structuredOutputs(o *Options, v string) error {
	var c struct {
		Backend   string `json:"backend"`
		Compact   bool   `json:"disable_any_whitespace"`
		Parser    string `json:"reasoning_parser"`
		Plugin    string `json:"reasoning_parser_plugin"`
		Reasoning bool   `json:"enable_in_reasoning"`
	}
	if err := json.Unmarshal([]byte(v), &c); err != nil {
		return fmt.Errorf("%w; want JSON with backend, disable_any_whitespace or reasoning_parser", err)
	}
	switch {
	case c.Plugin != "":
		return fmt.Errorf("reasoning_parser_plugin: code of Python's is not run; --reasoning-parser names a built-in parser")
	case c.Reasoning:
		return fmt.Errorf("enable_in_reasoning: the form of an answer holds behind its reasoning")
	}
	if c.Parser != "" && o.ReasoningParser == "" {
		o.ReasoningParser = c.Parser
	}
	o.CompactJSON = c.Compact
	return nil
}

// templateDefaults reads --default-chat-template-kwargs.
func templateDefaults(o *Options, v string) error {
	if json.Unmarshal([]byte(v), &o.TemplateDefaults) != nil {
		return fmt.Errorf(`%.80q; want a JSON object, as {"enable_thinking": false}`, v)
	}
	for name := range o.TemplateDefaults {
		if slices.Contains([]string{"messages", "tools", "chat_template", "tokenize", "add_generation_prompt", "continue_final_message", "bos_token", "eos_token"}, name) {
			return fmt.Errorf("%s is set by the server", name)
		}
	}
	return nil
}

// profilerConfig reads --profiler-config. Of torch's settings the folder and the bounds
// of steps have a meaning here; the others shape torch's own files.
func profilerConfig(o *Options, v string) error {
	var c struct {
		Profiler string `json:"profiler"`
		Dir      string `json:"torch_profiler_dir"`
		Delay    int    `json:"delay_iterations"`
		Most     int    `json:"max_iterations"`
	}
	switch err := json.Unmarshal([]byte(v), &c); {
	case err != nil:
		return fmt.Errorf(`%w; want JSON, as {"profiler": "torch", "torch_profiler_dir": "/tmp/profiles"}`, err)
	case c.Profiler == "":
		o.Profiler = nil
		return nil
	case c.Profiler != "torch":
		return fmt.Errorf("the profiler %q is not there; \"torch\" takes this worker's own profiles", c.Profiler)
	case c.Delay < 0 || c.Most < 0:
		return fmt.Errorf("delay_iterations and max_iterations are 0 or more")
	}
	return profileInto(o, "torch_profiler_dir", c.Dir, c.Delay, c.Most)
}

// profileInto has profiles written into a folder.
func profileInto(o *Options, name, dir string, delay, most int) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("%s is %q; want the absolute path of a folder for the profiles", name, dir)
	}
	o.Profiler = &profile.Settings{Dir: dir, Delay: delay, Most: most}
	return nil
}

// loggingConfig reads the level of --logging-config.
func loggingConfig(o *Options, v string) error {
	var c struct {
		Level string `json:"log_level"`
		File  string `json:"log_config_file"`
	}
	switch err := json.Unmarshal([]byte(v), &c); {
	case err != nil:
		return fmt.Errorf("%w; want JSON with log_level", err)
	case c.File != "":
		return fmt.Errorf("log_config_file: the log goes to stderr; log_level says how much")
	case c.Level == "" || o.levelled:
		return nil
	}
	return logLevel(o, c.Level)
}
