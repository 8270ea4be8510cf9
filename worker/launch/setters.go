package launch

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"
)

// setter gives an option its value.
type setter = func(o *Options, v string) error

// setters are what the flags of the table that are done do, by name.
var setters = joined(serverSetters(), chatSetters(), modelSetters(), memorySetters(), adapterSetters(), sightSetters())

// cleared are flags that take several values: a later one stands in place of
// an earlier one.
var cleared = map[string]func(o *Options){
	"served-model-name": func(o *Options) { o.ServedNames = nil },
	"api-key":           func(o *Options) { o.APIKeys = nil },
	"lora-modules":      func(o *Options) { o.Adapters.Modules = nil },
	"numa-bind-nodes":   func(o *Options) { o.Mems = "" },
	"numa-bind-cpus":    func(o *Options) { o.CPUs = "" },
}

func joined(parts ...map[string]setter) map[string]setter {
	all := map[string]setter{}
	for _, p := range parts {
		for name, set := range p {
			all[name] = set
		}
	}
	return all
}

// serverSetters are of the process and its HTTP.
func serverSetters() map[string]setter {
	return map[string]setter{
		"host":                           text(func(o *Options) *string { return &o.Host }),
		"port":                           number(func(o *Options) *int { return &o.Port }, 0),
		"uds":                            text(func(o *Options) *string { return &o.Socket }),
		"root-path":                      text(func(o *Options) *string { return &o.RootPath }),
		"api-key":                        texts(func(o *Options) *[]string { return &o.APIKeys }),
		"ssl-keyfile":                    text(func(o *Options) *string { return &o.TLS.Key }),
		"ssl-certfile":                   text(func(o *Options) *string { return &o.TLS.Cert }),
		"ssl-ca-certs":                   text(func(o *Options) *string { return &o.TLS.CA }),
		"ssl-cert-reqs":                  number(func(o *Options) *int { return &o.TLS.Clients }, 0),
		"ssl-ciphers":                    text(func(o *Options) *string { return &o.TLS.Ciphers }),
		"enable-ssl-refresh":             flag(func(o *Options) *bool { return &o.TLS.Refresh }),
		"allowed-origins":                jsonTexts(func(o *Options) *[]string { return &o.CORS.Origins }),
		"allowed-methods":                jsonTexts(func(o *Options) *[]string { return &o.CORS.Methods }),
		"allowed-headers":                jsonTexts(func(o *Options) *[]string { return &o.CORS.Headers }),
		"allow-credentials":              flag(func(o *Options) *bool { return &o.CORS.Credentials }),
		"enable-request-id-headers":      flag(func(o *Options) *bool { return &o.RequestIDHeaders }),
		"enable-tokenizer-info-endpoint": flag(func(o *Options) *bool { return &o.TokenizerInfo }),
		"enable-server-load-tracking":    flag(func(o *Options) *bool { return &o.LoadTracking }),
		"enable-log-requests":            flag(func(o *Options) *bool { return &o.LogRequests }),
		"disable-log-requests":           func(o *Options, v string) error { o.LogRequests = v != "true"; return nil },
		"disable-log-stats":              flag(func(o *Options) *bool { return &o.NoLogStats }),
		"legacy-metrics":                 flag(func(o *Options) *bool { return &o.LegacyMetrics }),
		"log-level":                      logLevel,
		"logging-config":                 loggingConfig,
		"profiler-config":                profilerConfig,
		"shutdown-timeout": func(o *Options, v string) error {
			n := 0
			if err := number(func(*Options) *int { return &n }, 0)(o, v); err != nil {
				return err
			}
			o.ShutdownTimeout = time.Duration(n) * time.Second
			return nil
		},
	}
}

// chatSetters are of what a chat is made of.
func chatSetters() map[string]setter {
	return map[string]setter{
		"chat-template":                       text(func(o *Options) *string { return &o.ChatTemplate }),
		"default-chat-template-kwargs":        templateDefaults,
		"response-role":                       text(func(o *Options) *string { return &o.ResponseRole }),
		"return-tokens-as-token-ids":          flag(func(o *Options) *bool { return &o.TokensAsIDs }),
		"enable-auto-tool-choice":             flag(func(o *Options) *bool { return &o.AutoTools }),
		"exclude-tools-when-tool-choice-none": flag(func(o *Options) *bool { return &o.HideTools }),
		"tool-call-parser":                    text(func(o *Options) *string { return &o.ToolParser }),
		"reasoning-parser":                    text(func(o *Options) *string { return &o.ReasoningParser }),
		"structured-outputs-config":           structuredOutputs,
		"enable-prompt-tokens-details":        flag(func(o *Options) *bool { return &o.PromptDetails }),
		"enable-force-include-usage":          flag(func(o *Options) *bool { return &o.ForceUsage }),
		"generation-config":                   text(func(o *Options) *string { return &o.GenerationConfig }),
		"override-generation-config":          overrides,
		"speculative-config":                  speculative,
		"spec-method":                         specMethod,
		"spec-tokens":                         number(func(o *Options) *int { return &o.Speculative.Tokens }, 1),
		"max-logprobs": func(o *Options, v string) error {
			if err := number(func(o *Options) *int { return &o.MaxLogprobs }, 0)(o, v); err != nil || o.MaxLogprobs > 64 {
				return fmt.Errorf("%q; want a number from 0 to 64", v)
			}
			return nil
		},
		"seed": func(o *Options, v string) error {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				return fmt.Errorf("%q; want a whole number", v)
			}
			o.Seed = new(uint64(n))
			return nil
		},
	}
}

// modelSetters are of the model and where it computes.
func modelSetters() map[string]setter {
	return map[string]setter{
		"model":              text(func(o *Options) *string { return &o.Model }),
		"served-model-name":  texts(func(o *Options) *[]string { return &o.ServedNames }),
		"tokenizer":          text(func(o *Options) *string { return &o.Tokenizer }),
		"tokenizer-revision": text(func(o *Options) *string { return &o.TokenizerRevision }),
		"revision":           text(func(o *Options) *string { return &o.Revision }),
		"download-dir":       text(func(o *Options) *string { return &o.DownloadDir }),
		"runner":             oneOf(func(o *Options) *string { return &o.Runner }, "auto", "generate", "pooling"),
		"task":               oneOf(func(o *Options) *string { return &o.Task }, "auto", "generate", "embed", "embedding", "score", "classify"),
		"dtype":              oneOf(func(o *Options) *string { return &o.DType }, "auto", "bfloat16", "half", "float16", "float", "float32"),
		"quantization":       quantization,
		"kv-cache-dtype":     oneOf(func(o *Options) *string { return &o.KVDType }, "auto", "bfloat16", "float32", "fp8", "fp8_e4m3", "int8", "int8_per_token_head"),
		"head-dtype":         oneOf(func(o *Options) *string { return &o.HeadDType }, "auto", "bfloat16"),
		"verify-weights":     flag(func(o *Options) *bool { return &o.Verify }),
		"hf-overrides": func(o *Options, v string) error {
			if json.Unmarshal([]byte(v), &o.Config) != nil {
				return fmt.Errorf("%.80q; want a JSON object of fields of config.json", v)
			}
			return nil
		},
		"device":          text(func(o *Options) *string { return &o.Device }),
		"device-ids":      deviceID,
		"cpus":            text(func(o *Options) *string { return &o.CPUs }),
		"numa-bind-cpus":  alone(func(o *Options) *string { return &o.CPUs }),
		"mems":            text(func(o *Options) *string { return &o.Mems }),
		"numa-bind-nodes": alone(func(o *Options) *string { return &o.Mems }),
		"cpu-isa":         text(func(o *Options) *string { return &o.ISA }),
		"weights-cache":   text(func(o *Options) *string { return &o.PackedDir }),
		"pace":            func(o *Options, v string) (err error) { o.Pace, err = time.ParseDuration(v); return err },
	}
}

// memorySetters are of steps and the cache.
func memorySetters() map[string]setter {
	return map[string]setter{
		"max-model-len":                length,
		"disable-sliding-window":       flag(func(o *Options) *bool { return &o.NoWindow }),
		"block-size":                   number(func(o *Options) *int { return &o.BlockTokens }, 1),
		"max-num-seqs":                 number(func(o *Options) *int { return &o.MaxSeqs }, 1),
		"max-num-active-seqs":          number(func(o *Options) *int { return &o.ActiveSeqs }, 1),
		"max-num-batched-tokens":       number(func(o *Options) *int { return &o.MaxBatched }, 1),
		"max-num-scheduled-tokens":     number(func(o *Options) *int { return &o.Scheduled }, 1),
		"long-prefill-token-threshold": number(func(o *Options) *int { return &o.LongPrefill }, 0),
		"scheduling-policy": func(o *Options, v string) error {
			policy := ""
			err := oneOf(func(*Options) *string { return &policy }, "fcfs", "priority")(o, v)
			o.FCFS = policy == "fcfs"
			return err
		},
		"num-gpu-blocks-override": number(func(o *Options) *int { return &o.Blocks }, 1),
		"gpu-memory-utilization": func(o *Options, v string) error {
			u, err := strconv.ParseFloat(v, 64)
			if err != nil || !(u > 0 && u <= 1) {
				return fmt.Errorf("%q: want a share above 0 and at most 1", v)
			}
			o.Utilization = u
			return nil
		},
		"device-memory-bytes":   size(func(o *Options) *int64 { return &o.DeviceBytes }),
		"kv-cache-memory-bytes": size(func(o *Options) *int64 { return &o.KVBytes }),
		"enable-prefix-caching": flag(func(o *Options) *bool { return &o.PrefixCache }),
	}
}

func text(at func(*Options) *string) setter {
	return func(o *Options, v string) error { *at(o) = v; return nil }
}

func oneOf(at func(*Options) *string, choices ...string) setter {
	return func(o *Options, v string) error {
		if !slices.Contains(choices, v) {
			return fmt.Errorf("%q is not supported; want one of %s", v, strings.Join(choices, ", "))
		}
		*at(o) = v
		return nil
	}
}

func texts(at func(*Options) *[]string) setter {
	return func(o *Options, v string) error { *at(o) = append(*at(o), v); return nil }
}

// jsonTexts reads a JSON list of texts.
func jsonTexts(at func(*Options) *[]string) setter {
	return func(o *Options, v string) error {
		*at(o) = nil
		if json.Unmarshal([]byte(v), at(o)) != nil {
			return fmt.Errorf(`%.80q; want a JSON list of texts, as ["*"]`, v)
		}
		return nil
	}
}

// alone takes the one value of a list that has one for each device.
func alone(at func(*Options) *string) setter {
	return func(o *Options, v string) error {
		if *at(o) != "" {
			return fmt.Errorf("%q is a second one; a worker has one device", v)
		}
		*at(o) = v
		return nil
	}
}

func flag(at func(*Options) *bool) setter {
	return func(o *Options, v string) error { *at(o) = v == "true"; return nil }
}

func number(at func(*Options) *int, least int) setter {
	return func(o *Options, v string) error {
		n, err := count(v)
		if err != nil || n < int64(least) || n > 1<<40 {
			return fmt.Errorf("%q; want a whole number of at least %d", v, least)
		}
		*at(o) = int(n)
		return nil
	}
}

func size(at func(*Options) *int64) setter {
	return func(o *Options, v string) error {
		n, err := count(v)
		if err != nil || n < 1 {
			return fmt.Errorf("%q: want a number of bytes", v)
		}
		*at(o) = n
		return nil
	}
}

// logLevel is --log-level, which stands above the environment's.
func logLevel(o *Options, v string) error {
	level, ok := logLevels[strings.ToUpper(v)]
	if !ok {
		return fmt.Errorf("%q; want DEBUG, INFO, WARNING, ERROR or CRITICAL", v)
	}
	o.LogLevel, o.levelled = level, true
	return nil
}

// logLevels are vLLM's names of them.
var logLevels = map[string]slog.Level{
	"NOTSET": slog.LevelDebug, "DEBUG": slog.LevelDebug, "INFO": slog.LevelInfo, "WARNING": slog.LevelWarn, "ERROR": slog.LevelError, "CRITICAL": slog.LevelError,
}
