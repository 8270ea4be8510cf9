package launch

import (
	"fmt"
	"math"
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
	if v := getenv("VLLM_MAX_IMAGE_PIXELS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			return fmt.Errorf("VLLM_MAX_IMAGE_PIXELS is %q; want the pixels of the greatest image that is decoded, 0 for any", v)
		}
		if n <= 0 { // as vLLM has it; what a request decodes stays bounded
			n = math.MaxInt32
		}
		o.Sight.Pixels.Pixels = n
	}
	if err := o.Sight.Sounds.environment(getenv); err != nil {
		return err
	}
	if v := getenv("VLLM_INT4_GROUP_SIZE"); v != "" && v != "128" && o.Quantization == "sym_int4" {
		return fmt.Errorf("VLLM_INT4_GROUP_SIZE is %q; sym_int4 has groups of 128 here, leave the variable out", v)
	}
	if name := getenv("VLLM_LOGGING_LEVEL"); name != "" && !o.levelled {
		level, ok := logLevels[strings.ToUpper(name)]
		if !ok {
			return fmt.Errorf("VLLM_LOGGING_LEVEL is %q; want DEBUG, INFO, WARNING, ERROR or CRITICAL", name)
		}
		o.LogLevel = level
	}
	if dir := getenv("VLLM_TORCH_PROFILER_DIR"); dir != "" && o.Profiler == nil {
		if err := profileInto(o, "VLLM_TORCH_PROFILER_DIR", dir, 0, 0); err != nil {
			return err
		}
	}
	if err := o.checkVLLMVariables(getenv); err != nil {
		return err
	}
	o.BeyondModel = isTrue(getenv("VLLM_ALLOW_LONG_MAX_MODEL_LEN"))
	o.Adapters.Runtime = isTrue(getenv("VLLM_ALLOW_RUNTIME_LORA_UPDATING"))
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

// isTrue reads a variable that is on or off.
func isTrue(v string) bool {
	return slices.Contains([]string{"1", "true"}, strings.ToLower(strings.TrimSpace(v)))
}

// ignoredVariables are those of vLLM's, and of the libraries below it, that
// commands for Intel's GPUs set and that change nothing here.
var ignoredVariables = []string{
	"VLLM_WORKER_MULTIPROC_METHOD", "VLLM_OFFLOAD_WEIGHTS_BEFORE_QUANT", "VLLM_QUANTIZE_Q40_LIB", "VLLM_ENABLE_V1_MULTIPROCESSING",
	"VLLM_USE_V2_MODEL_RUNNER", "VLLM_MULTIPROC_EXECUTE_MODEL_TIMEOUT_S", "VLLM_MLA_DISABLE", "VLLM_XPU_SINGLECARD_TRITON",
	"VLLM_XPU_ENABLE_XPU_GRAPH", "VLLM_TARGET_DEVICE", "VLLM_HOST_IP", "VLLM_NIXL_SIDE_CHANNEL_HOST", "VLLM_NIXL_SIDE_CHANNEL_PORT",
	"VLLM_ATTENTION_BACKEND", "VLLM_CPU_OMP_THREADS_BIND", "VLLM_CPU_NUM_OF_RESERVED_CPU", "VLLM_NO_USAGE_STATS", "VLLM_DO_NOT_TRACK",
	"VLLM_USE_V1", "VLLM_RPC_TIMEOUT", "VLLM_ENGINE_ITERATION_TIMEOUT_S", "VLLM_SKIP_WARMUP", "VLLM_USE_TRITON_FLASH_ATTN",
	"UR_L0_USE_IMMEDIATE_COMMANDLISTS", "SYCL_CACHE_PERSISTENT", "SYCL_PI_LEVEL_ZERO_USE_IMMEDIATE_COMMANDLISTS", "TORCH_LLM_ALLREDUCE",
	"CCL_WORKER_COUNT", "CCL_ATL_TRANSPORT", "CCL_ZE_IPC_EXCHANGE", "CCL_TOPO_P2P_ACCESS", "CCL_DG2_USM",
}

// checkVLLMVariables says once which variables change nothing, and refuses those that ask
// for what is not there.
func (o *Options) checkVLLMVariables(getenv func(string) string) error {
	if v := getenv("VLLM_PLUGINS"); v != "" {
		return fmt.Errorf("VLLM_PLUGINS is %q; code of Python's is not run, leave the variable out", v)
	}
	var set []string
	for _, name := range ignoredVariables {
		if getenv(name) != "" {
			set = append(set, name)
		}
	}
	if len(set) > 0 {
		o.Warnings = append(o.Warnings, "variables of vLLM's that change nothing here: "+strings.Join(set, ", "))
	}
	return nil
}
