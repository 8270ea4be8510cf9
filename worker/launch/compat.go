package launch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// Overrides are --override-generation-config: defaults of sampling that stand
// above the model's own.
type Overrides struct {
	Temperature *float64 `json:"temperature"`
	TopP        *float64 `json:"top_p"`
	TopK        *int     `json:"top_k"`
	MinP        *float64 `json:"min_p"`
	Repetition  *float64 `json:"repetition_penalty"`
}

func overrides(o *Options, v string) error {
	d := json.NewDecoder(bytes.NewReader([]byte(v)))
	d.DisallowUnknownFields()
	if err := d.Decode(&o.Sampling); err != nil {
		return fmt.Errorf("%w; want JSON with temperature, top_p, top_k, min_p or repetition_penalty", err)
	}
	return nil
}

// compatFlags are vLLM's flags of which a worker has the part that is named
// here; a value outside of it stops the start.
func compatFlags() []flagSpec {
	return []flagSpec{
		{"tokenizer", flagValue, text(func(o *Options) *string { return &o.Tokenizer })},
		{"tokenizer-mode", flagValue, only("all of them give the same tokens", "auto", "hf", "slow", "bpe-qwen")},
		{"revision", flagValue, text(func(o *Options) *string { return &o.Revision })},
		{"download-dir", flagValue, text(func(o *Options) *string { return &o.DownloadDir })},
		{"load-format", flagValue, only("weights come from safetensors or GGUF files", "auto", "safetensors", "gguf")},
		{"seed", flagValue, func(o *Options, v string) error {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				return fmt.Errorf("%q; want a whole number", v)
			}
			o.Seed = new(uint64(n))
			return nil
		}},
		{"runner", flagValue, oneOf(func(o *Options) *string { return &o.Runner }, "auto", "generate", "pooling")},
		{"convert", flagValue, only("a model does what it was made for", "auto", "none")},
		{"scheduling-policy", flagValue, only("requests go by priority, then the shortest first with ageing", "priority")},
		{"long-prefill-token-threshold", flagValue, number(func(o *Options) *int { return &o.LongPrefill }, 0)},
		{"chat-template-content-format", flagValue, only("text in parts is joined before the template sees it", "auto", "string")},
		{"response-role", flagValue, text(func(o *Options) *string { return &o.ResponseRole })},
		{"stream-interval", flagValue, only("every token is sent when it is there", "1")},
		{"override-generation-config", flagValue, overrides},
		{"verify-weights", flagSwitch, flag(func(o *Options) *bool { return &o.Verify })},
		{"hf-overrides", flagValue, func(o *Options, v string) error {
			if json.Unmarshal([]byte(v), &o.Config) != nil {
				return fmt.Errorf("%.80q; want a JSON object of fields of config.json", v)
			}
			return nil
		}},
		{"disable-sliding-window", flagSwitch, flag(func(o *Options) *bool { return &o.NoWindow })},
		{"return-tokens-as-token-ids", flagSwitch, flag(func(o *Options) *bool { return &o.TokensAsIDs })},
		{"enable-log-requests", flagSwitch, flag(func(o *Options) *bool { return &o.LogRequests })},
		{"disable-log-requests", flagSwitch, func(o *Options, v string) error { o.LogRequests = v != "true"; return nil }},
		{"disable-log-stats", flagSwitch, flag(func(o *Options) *bool { return &o.NoLogStats })},
		{"enable-chunked-prefill", flagSwitch, func(_ *Options, v string) error {
			if v != "true" {
				return fmt.Errorf("prompts are always computed in chunks beside what generates; leave the flag out")
			}
			return nil
		}},
	}
}

// only takes some values, none of which changes anything, because all of them
// name what is so.
func only(why string, values ...string) func(*Options, string) error {
	return func(o *Options, v string) error {
		s := ""
		if err := oneOf(func(*Options) *string { return &s }, values...)(o, v); err != nil {
			return fmt.Errorf("%w: %s", err, why)
		}
		return nil
	}
}

// ignoredFlags tune what a worker does not have, and no request could tell the
// difference. They are taken for compatibility's sake; a warning says that they
// have no effect.
func ignoredFlags() []flagSpec {
	var flags []flagSpec
	for _, name := range []string{
		"swap-space", "uvicorn-log-level", "max-seq-len-to-capture", "distributed-executor-backend", "allowed-local-media-path",
		"max-parallel-loading-workers", "cpu-offload-gb", "root-path", "prefix-caching-hash-algo", "max-log-len", "compilation-config", "limit-mm-per-prompt",
	} {
		flags = append(flags, flagSpec{name, flagIgnored, nil})
	}
	for _, name := range []string{
		"enforce-eager", "trust-remote-code", "disable-uvicorn-access-log", "disable-frontend-multiprocessing",
		"use-v2-block-manager", "async-scheduling", "disable-custom-all-reduce", "disable-fastapi-docs",
	} {
		flags = append(flags, flagSpec{name, flagIgnoredSwitch, nil})
	}
	return flags
}

// withoutWindow holds contexts to the model's sliding window, within which it
// makes no difference.
func withoutWindow(o *Options, windows []int) error {
	if !o.NoWindow {
		return nil
	}
	for _, w := range windows {
		switch {
		case w == 0:
		case o.MaxModelLen > w:
			return fmt.Errorf("--disable-sliding-window: contexts of %d tokens are longer than the window of %d; leave one of the two flags out", o.MaxModelLen, w)
		case o.MaxModelLen < 1:
			o.MaxModelLen = w
		}
	}
	return nil
}
