package moby

import (
	"sort"
	"strconv"

	"github.com/docker/go-units"

	"roundhouse/configs"
	"roundhouse/supervisor/core"
	"roundhouse/supervisor/driver"
)

// DefaultPort is where vLLM listens when nothing says otherwise.
const DefaultPort = 8000

// LogDriver keeps what a worker writes where the engine can read it again. Others send
// it to wherever their options say.
const LogDriver = "json-file"

// LogOptions bound it.
func LogOptions() map[string]string { return map[string]string{"max-size": "64m", "max-file": "4"} }

// Ulimits are the configuration's, in a fixed order.
func Ulimits(spec driver.Spec) []*units.Ulimit {
	var out []*units.Ulimit
	for name, limit := range spec.Container.Ulimits {
		out = append(out, &units.Ulimit{Name: name, Soft: limit, Hard: limit})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Capabilities are the configuration's as the engine itself writes them.
func Capabilities(c configs.Container) []string {
	var out []string
	for _, name := range c.CapAdd {
		out = append(out, "CAP_"+name)
	}
	return out
}

// Name is what a worker's container is called.
func Name(spec driver.Spec) string {
	if _, err := strconv.Atoi(spec.Name); err == nil || spec.Name == core.Relief {
		return "roundhouse-" + spec.Pool + "-" + spec.Name
	}
	return spec.Name
}

// Environment joins the container's and the engine's, in a fixed order.
func Environment(spec driver.Spec) []string {
	all := map[string]string{}
	for k, v := range spec.Container.Environment {
		all[k] = v
	}
	for k, v := range spec.Engine.Environment {
		all[k] = v
	}
	out := make([]string, 0, len(all))
	for k, v := range all {
		out = append(out, k+"="+v)
	}
	sort.Strings(out)
	return out
}

// Arguments are the flags of `vllm serve`. On the host's own network the
// engine listens on the loopback: the door alone is for the others.
func Arguments(spec driver.Spec, onHost bool, port int) []string {
	e := spec.Engine
	address := "0.0.0.0"
	if onHost {
		address = "127.0.0.1"
	}
	args := []string{"--host", address, "--port", strconv.Itoa(port)}
	if e.Model != "" {
		args = append([]string{"--model", e.Model}, args...)
	}
	if len(e.ServedModelName) > 0 {
		args = append(append(args, "--served-model-name"), e.ServedModelName...)
	}
	if e.Quantization != "" {
		args = append(args, "--quantization", e.Quantization)
	}
	if e.MaxModelLen > 0 {
		args = append(args, "--max-model-len", strconv.Itoa(e.MaxModelLen))
	}
	return append(args, e.Args...)
}
