package launch

import (
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
)

func TestEnvironment(t *testing.T) {
	f := func(env, args string, want func(Options) any, value any) {
		t.Helper()
		name, v, _ := strings.Cut(env, "=")
		o, err := ParseServe(strings.Fields(args), func(n string) string {
			if n == name {
				return v
			}
			return ""
		})
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(want(o))
		}
		if !strings.Contains(got, fmt.Sprint(value)) {
			t.Errorf("%s %s: got %v; want %v", env, args, got, value)
		}
	}
	keys := func(o Options) any { return o.APIKeys }
	f("VLLM_API_KEY=a", "", keys, "[a]")
	f("VLLM_API_KEY=a", "--api-key b", keys, "[b]")
	cache := func(o Options) any { return o.KVBytes }
	f("VLLM_CPU_KVCACHE_SPACE=1.5", "", cache, 3<<29)
	f("VLLM_CPU_KVCACHE_SPACE=1.5", "--kv-cache-memory-bytes 7", cache, 7)
	f("VLLM_CPU_KVCACHE_SPACE=much", "", cache, `VLLM_CPU_KVCACHE_SPACE is "much"; want a number of GiB`)
	f("VLLM_CPU_KVCACHE_SPACE=inf", "", cache, "want a number of GiB")
	pixels := func(o Options) any { return o.Sight.Pixels.Pixels }
	f("VLLM_MAX_IMAGE_PIXELS=900", "", pixels, "900")
	f("VLLM_MAX_IMAGE_PIXELS=0", "", pixels, math.MaxInt32)
	f("VLLM_MAX_IMAGE_PIXELS=1e6", "", pixels, "want the pixels of the greatest image")
	group := func(o Options) any { return o.Quantization }
	f("VLLM_INT4_GROUP_SIZE=128", "--quantization sym_int4", group, "sym_int4")
	f("VLLM_INT4_GROUP_SIZE=32", "--quantization fp8", group, "fp8")
	f("VLLM_INT4_GROUP_SIZE=32", "--quantization sym_int4", group, "sym_int4 has groups of 128 here")
	level := func(o Options) any { return o.LogLevel }
	f("VLLM_LOGGING_LEVEL=warning", "", level, slog.LevelWarn)
	f("VLLM_LOGGING_LEVEL=loud", "", level, "want DEBUG, INFO, WARNING, ERROR or CRITICAL")
	f("VLLM_LOGGING_LEVEL=loud", "--log-level INFO", level, slog.LevelInfo)
	f("VLLM_ALLOW_LONG_MAX_MODEL_LEN=1", "", func(o Options) any { return o.BeyondModel }, true)
	f("VLLM_WORKER_MULTIPROC_METHOD=spawn", "", func(o Options) any { return o.Warnings }, "[variables of vLLM's that change nothing here: VLLM_WORKER_MULTIPROC_METHOD]")
	f("VLLM_PLUGINS=x", "", level, "code of Python's is not run")
	f("VLLM_SERVER_DEV_MODE=1", "", func(o Options) any { return o.DevMode }, true)
	f("ZE_AFFINITY_MASK=1", "", func(o Options) any { return o.GPUMask }, "1")
	f("HF_HUB_CACHE=/h", "--download-dir /d", func(o Options) any { return o.Caches }, "[/d /h]")
	f("HF_HOME=/h", "", func(o Options) any { return o.Caches }, "[/h/hub]")
}
