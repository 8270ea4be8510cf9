package launch

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"roundhouse/kernels"
	"roundhouse/kernels/cpu"
	"roundhouse/worker/device"
)

// openBackend opens what --device names, and leaves the rest of the process a
// thread of its own beside those that compute.
func openBackend(o *Options, packed cpu.Cache) (kernels.Backend, error) {
	if name, ok := strings.CutPrefix(o.Device, "xpu"); ok {
		return openXPU(o, strings.TrimPrefix(name, ":"))
	}
	cpus, err := theirs(o.CPUs, affinity())
	if err != nil {
		return nil, err
	}
	processors := len(cpus)
	if processors == 0 {
		processors = runtime.NumCPU() // what the cpuset leaves
	}
	threads := device.Threads(processors, device.Here())
	if runtime.GOMAXPROCS(0) < threads+1 {
		runtime.GOMAXPROCS(threads + 1)
	}
	be, err := cpu.New(cpu.Options{Threads: threads, CPUs: cpus, Nodes: device.NodesOfCPUs(device.Nodes("/sys"), cpus), ISA: o.ISA, Cache: packed})
	if err != nil {
		return nil, fmt.Errorf("--device cpu: %w", err) // a processor or an instruction set that is not there
	}
	return be, nil
}

// theirs is what --cpus leaves of the CPUs that this process may run on: a container
// may allow fewer than the whole machine has.
func theirs(list string, allowed []int) ([]int, error) {
	asked, err := device.ParseList(list)
	if err != nil {
		return nil, fmt.Errorf("--cpus %s: %w", list, err)
	}
	cpus := slices.DeleteFunc(slices.Clone(asked), func(c int) bool { return len(allowed) > 0 && !slices.Contains(allowed, c) })
	if len(cpus) == 0 && len(asked) > 0 {
		return nil, fmt.Errorf("--cpus %s: none of them is there; this process may run on %s", list, device.FormatList(allowed))
	}
	return cpus, nil
}

// OpenDevice opens the device that --device names, for commands that serve nothing:
// "cpu", "xpu", "xpu:0000:18:00.0".
func OpenDevice(name string, getenv func(string) string) (kernels.Backend, error) {
	o, err := ParseServe([]string{"--device", name}, getenv)
	if err != nil {
		return nil, err
	}
	return openBackend(&o, cpu.Cache{})
}

// format is how the linears' weights are kept.
func format(o *Options) kernels.Format {
	switch o.Quantization {
	case "fp8":
		return kernels.FormatFP8
	case "sym_int4":
		return kernels.FormatInt4
	case "int8":
		return kernels.FormatInt8
	case "gptq":
		return kernels.FormatGPTQ
	case "awq":
		return kernels.FormatAWQ
	}
	switch o.DType {
	case "float", "float32":
		return kernels.FormatF32
	case "half", "float16":
		return kernels.FormatF16
	}
	return kernels.FormatBF16
}

// kvType is how keys and values are kept.
func kvType(o *Options) kernels.DType {
	switch o.KVDType {
	case "float32":
		return kernels.F32
	case "fp8", "fp8_e4m3":
		return kernels.F8E4M3
	case "int8", "int8_per_token_head":
		return kernels.Int8
	}
	if o.KVDType == "auto" && strings.HasPrefix(o.DType, "float") && o.DType != "float16" {
		return kernels.F32
	}
	return kernels.BF16
}
