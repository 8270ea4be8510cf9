package configs

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// RuntimeAdapters is the variable without which vLLM, and our engine, load no adapter
// while they run.
const RuntimeAdapters = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"

// adapterSlots is how many adapters an engine is given room for at once. A number that
// follows each block would restart the workers whenever one is added.
const adapterSlots = 4

// enable has an engine load adapters while it runs, unless its args say how already.
func (p *Pool) enable(e *Engine) {
	has := func(flags ...string) bool {
		return slices.ContainsFunc(e.Args, func(arg string) bool {
			name, _, _ := strings.Cut(strings.ReplaceAll(arg, "_", "-"), "=")
			return slices.Contains(flags, name)
		})
	}
	args := slices.Clone(e.Args)
	if !has("--enable-lora") {
		args = append(args, "--enable-lora")
	}
	if !has("--max-loras", "--max-cpu-loras") {
		slots := (len(p.Adapters) + adapterSlots - 1) / adapterSlots * adapterSlots
		args = append(args, "--max-cpu-loras", strconv.Itoa(slots))
	}
	e.Args = args
	if _, set := e.Environment[RuntimeAdapters]; !set {
		environment := maps.Clone(e.Environment)
		if environment == nil {
			environment = map[string]string{}
		}
		environment[RuntimeAdapters] = "True"
		e.Environment = environment
	}
}

// checkAdapters holds the names of a pool's adapters to what engines take, and apart.
func checkAdapters(d *decoder, path string, p *Pool) {
	for _, a := range p.Adapters {
		at := sub(path, labelled("adapter", a.Name))
		switch {
		case a.Name == "" || len(a.Name) > 256 || strings.ContainsFunc(a.Name, func(r rune) bool { return r == ',' || !unicode.IsPrint(r) }):
			d.failf(at, "adapter %q: a name is up to 256 bytes of printable text without commas", a.Name)
		case slices.Contains(p.Engine.ServedModelName, a.Name):
			d.failf(at, "adapter %q has the name of the model itself", a.Name)
		case a.Path == "":
			d.failf(at, "adapter %q has no path: the folder that it lies in, as the worker sees it", a.Name)
		}
	}
}
