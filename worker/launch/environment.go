package launch

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// environment reads the variables that vLLM reads; flags stand above them.
func (o *Options) environment(getenv func(string) string) error {
	if key := getenv("VLLM_API_KEY"); key != "" && len(o.APIKeys) == 0 {
		o.APIKeys = []string{key}
	}
	if v := getenv("VLLM_CPU_KVCACHE_SPACE"); v != "" && o.KVBytes == 0 {
		gib, err := strconv.ParseFloat(v, 64)
		if err != nil || !(gib > 0 && gib < 1<<20) {
			return fmt.Errorf("VLLM_CPU_KVCACHE_SPACE is %q; want a number of GiB", v)
		}
		o.KVBytes = int64(gib * (1 << 30))
	}
	if v := getenv("VLLM_INT4_GROUP_SIZE"); v != "" && v != "128" && o.Quantization == "sym_int4" {
		return fmt.Errorf("VLLM_INT4_GROUP_SIZE is %q; sym_int4 has groups of 128 here, leave the variable out", v)
	}
	levels := map[string]slog.Level{
		"": slog.LevelInfo, "DEBUG": slog.LevelDebug, "INFO": slog.LevelInfo, "WARNING": slog.LevelWarn, "ERROR": slog.LevelError, "CRITICAL": slog.LevelError,
	}
	level, ok := levels[strings.ToUpper(getenv("VLLM_LOGGING_LEVEL"))]
	if !ok {
		return fmt.Errorf("VLLM_LOGGING_LEVEL is %q; want DEBUG, INFO, WARNING, ERROR or CRITICAL", getenv("VLLM_LOGGING_LEVEL"))
	}
	o.LogLevel = level
	o.Adapters.Runtime = slices.Contains([]string{"1", "true"}, strings.ToLower(strings.TrimSpace(getenv("VLLM_ALLOW_RUNTIME_LORA_UPDATING"))))
	o.DevMode = getenv("VLLM_SERVER_DEV_MODE") == "1"
	o.GPUMask, o.GPUSelector = getenv("ZE_AFFINITY_MASK"), getenv("ONEAPI_DEVICE_SELECTOR")
	o.Caches = caches(getenv)
	if o.DownloadDir != "" {
		o.Caches = append([]string{o.DownloadDir}, o.Caches...)
	}
	if o.PackedDir == "" {
		o.PackedDir = packedDir(getenv)
	}
	if dir := packedDir(getenv); dir != noCache {
		o.KernelDir = filepath.Join(dir, "kernels")
	}
	return nil
}
