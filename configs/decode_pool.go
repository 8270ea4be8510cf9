package configs

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// containerNames are the attributes that the docker and swarm drivers use; the
// process driver uses some of them.
var containerNames = []string{
	"image", "pull_policy", "entrypoint", "command", "environment", "volumes", "shm_size",
	"ulimits", "network_mode", "networks", "ipc", "init", "user", "labels",
	"cap_add", "security_opt", "devices_extra", "pids_limit", "memory", "extra_hosts",
}

// Tasks are what the workers of a pool may be for.
var Tasks = []string{"generate", "embed", "score", "transcribe", "speech", "image", "any"}

// countedTasks are those whose requests differ in nothing that the door could read
// before they have run.
var countedTasks = []string{"transcribe", "speech", "image", "any"}

// swarmNames are those that the swarm driver alone uses.
var swarmNames = []string{"constraints", "generic_resources"}

func (d *decoder) pool(b *body, c *Pool) {
	b.text("driver", &c.Driver)
	b.text("policy", &c.Policy)
	b.choice("task", &c.Task, Tasks...)
	b.choice("devices", &c.Devices, "auto", "cpu")
	integer(b, "gpus_per_worker", &c.GPUsPerWorker, 1, 64)
	b.text("reasoning_end", &c.ReasoningEnd)
	b.block("engine", func(b *body) {
		b.text("model", &c.Engine.Model)
		b.list("served_model_name", &c.Engine.ServedModelName)
		b.text("quantization", &c.Engine.Quantization)
		integer(b, "max_model_len", &c.Engine.MaxModelLen, 1, maxCount)
		b.list("args", &c.Engine.Args)
		b.texts("environment", &c.Engine.Environment)
		b.end()
	})
	b.block("rotation", func(b *body) { d.rotation(b, &c.Rotation) })
	b.block("canary", func(b *body) {
		c.Canary = &Canary{Share: 0.1, MinRequests: 200}
		b.share("share", &c.Canary.Share, 1)
		integer(b, "min_requests", &c.Canary.MinRequests, 1, maxCount)
		b.end()
	})
	b.block("scrape", func(b *body) {
		b.duration("interval", &c.Scrape.Interval, 10*millisecond)
		b.texts("names", &c.Scrape.Names)
		for key := range c.Scrape.Names {
			if !slices.Contains(ScrapeKeys, key) {
				b.d.failf(sub(b.path, "names"), "names: %q is none of the figures that are read: %s", key, strings.Join(ScrapeKeys, ", "))
			}
		}
		b.end()
	})
	d.container(b, &c.Container)
	b.text("selector", &c.Pods.Selector)
	integer(b, "port", &c.Pods.Port, 1, math.MaxUint16)
	b.text("inference_pool", &c.Pods.InferencePool)
	b.text("namespace", &c.Pods.Namespace)
	b.each("adapter", func(name string, b *body) {
		a := Adapter{Name: name}
		b.text("path", &a.Path)
		b.end()
		c.Adapters = append(c.Adapters, a)
	})
	d.workers(b, c)
	b.end()
}

func (d *decoder) container(b *body, c *Container) {
	b.text("image", &c.Image)
	b.choice("pull_policy", &c.PullPolicy, "missing", "always", "never")
	b.command("entrypoint", &c.Entrypoint)
	b.command("command", &c.Command)
	b.texts("environment", &c.Environment)
	b.list("volumes", &c.Volumes)
	b.size("shm_size", &c.ShmSize, 0)
	b.numbers("ulimits", &c.Ulimits)
	b.text("network_mode", &c.NetworkMode)
	b.list("networks", &c.Networks)
	b.text("ipc", &c.IPC)
	b.truth("init", &c.Init)
	b.text("user", &c.User)
	b.texts("labels", &c.Labels)
	b.list("cap_add", &c.CapAdd)
	for i, name := range c.CapAdd { // one spelling here, as of PCI addresses
		c.CapAdd[i] = strings.TrimPrefix(strings.ToUpper(name), "CAP_")
	}
	b.list("security_opt", &c.SecurityOpt)
	b.list("devices_extra", &c.DevicesExtra)
	integer(b, "pids_limit", &c.PidsLimit, 1, maxPids)
	b.size("memory", &c.Memory, leastMemory)
	b.list("extra_hosts", &c.ExtraHosts)
	b.list("constraints", &c.Constraints)
	b.numbers("generic_resources", &c.GenericResources)
}

// workers reads `workers = N` or the worker blocks, and spells the count out.
func (d *decoder) workers(b *body, c *Pool) {
	count := 0
	integer(b, "workers", &count, 1, 4096)
	b.each("worker", func(name string, b *body) {
		worker := Worker{Name: name}
		b.list("gpus", &worker.GPUs)
		integer(b, "port", &worker.Port, 1, math.MaxUint16)
		b.text("takeover", &worker.Takeover)
		b.text("url", &worker.URL)
		b.secret("api_key", &worker.APIKey)
		integer(b, "kv_tokens", &worker.KVTokens, 1, math.MaxInt64)
		b.texts("environment", &worker.Environment)
		b.list("args", &worker.Args)
		b.list("volumes", &worker.Volumes)
		b.end()
		for i, gpu := range worker.GPUs {
			if !strings.Contains(gpu, "-") { // a PCI address, which has one spelling here
				worker.GPUs[i] = strings.ToLower(gpu)
			}
		}
		c.Workers = append(c.Workers, worker)
	})
	if d.written(sub(b.path, "workers")) && len(c.Workers) > 0 {
		d.failf(sub(b.path, "workers"), "workers = %d and worker blocks: give the count or the blocks, not both", count)
		return
	}
	for n := range count {
		c.Workers = append(c.Workers, Worker{Name: fmt.Sprint(n + 1)})
	}
}

func (d *decoder) rotation(b *body, c *Rotation) {
	b.text("schedule", &c.Schedule)
	b.text("timezone", &c.Timezone)
	b.choice("strategy", &c.Strategy, "in_place", "surge")
	b.duration("drain_timeout", &c.DrainTimeout, 0)
	b.duration("ready_timeout", &c.ReadyTimeout, second)
	b.duration("stop_grace", &c.StopGrace, 0)
	integer(b, "min_ready", &c.MinReady, 0, 4096)
	b.choice("missed", &c.Missed, "once", "skip")
	b.duration("jitter", &c.Jitter, 0)
	b.list("blackout", &c.Blackout)
	integer(b, "after_requests", &c.AfterRequests, 0, math.MaxInt64)
	integer(b, "after_tokens", &c.AfterTokens, 0, math.MaxInt64)
	b.share("memory_growth", &c.MemoryGrowth, 1000)
	b.share("slowdown", &c.Slowdown, 1)
	b.end()
}

// resolve fills in what depends on the rest of the file.
func (d *decoder) resolve(c *Config) {
	for i := range c.Pools {
		p := &c.Pools[i]
		path := labelled("pool", p.Name)
		if p.Policy == "" {
			p.Policy = c.Door.Policy
			if slices.Contains(countedTasks, p.Task) {
				p.Policy = "least_inflight" // such engines tell nothing of a KV cache
			}
		}
		if len(p.Workers) == 0 && p.Driver != "static" && !p.OfPods() && !d.written(sub(path, "workers")) {
			p.Workers = []Worker{{Name: "1"}}
		}
		rotation := sub(path, "rotation")
		if !d.written(sub(rotation, "min_ready")) {
			p.Rotation.MinReady = max(len(p.Workers)-1, 0)
			if p.OfPods() {
				p.Rotation.MinReady = -1
			}
		}
		p.Pods.Rotates = p.OfPods() && d.written(rotation)
		// A pool that nobody scheduled is not turned behind its owner's back.
		if p.Rotation.Schedule != "" && !p.OfPods() {
			if !d.written(sub(rotation, "memory_growth")) {
				p.Rotation.MemoryGrowth = 0.2
			}
			if !d.written(sub(rotation, "slowdown")) {
				p.Rotation.Slowdown = 0.3
			}
		}
		p.Workers = slices.Clip(p.Workers)
	}
}
