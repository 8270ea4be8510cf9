package configs

import "regexp"

// podNames are the attributes that the kubernetes driver alone uses.
var podNames = []string{"selector", "inference_pool", "namespace", "port"}

// notOfPods are the attributes of workers that somebody else runs in pods: what is set
// and ignored is worse than an error.
var notOfPods = []string{"engine", "workers", "canary", "devices", "gpus_per_worker"}

// notOfEvictions are the attributes of a rotation that starts its workers itself.
var notOfEvictions = []string{"strategy", "stop_grace", "after_requests", "after_tokens", "memory_growth", "slowdown"}

var (
	namespaceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	objectName    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

// selectors are label selectors as Kubernetes spells them, of requirements that all hold.
var selectors = func() *regexp.Regexp {
	const (
		part  = `[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`
		key   = `([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?` + part
		value = `(` + part + `)?`
		set   = `\(\s*` + value + `(\s*,\s*` + value + `)*\s*\)`
		one   = `\s*(!\s*` + key + `|` + key + `(\s*(==?|!=)\s*` + value + `|\s+(in|notin)\s*` + set + `)?)\s*`
	)
	return regexp.MustCompile(`^` + one + `(,` + one + `)*$`)
}()

// checkPods holds a pool to the attributes of pods, where its driver is kubernetes, or to
// have none of them.
func checkPods(d *decoder, path string, p *Pool) {
	if p.Driver != "kubernetes" {
		for _, name := range podNames {
			if d.written(sub(path, name)) {
				d.failf(sub(path, name), "%s is for the kubernetes driver; this pool's driver is %s", name, p.Driver)
			}
		}
		return
	}
	for _, name := range notOfPods {
		if d.written(sub(path, name)) {
			d.failf(sub(path, name), "%s: the pods of a kubernetes pool are run by somebody else; it has a selector or an inference_pool", name)
		}
	}
	for _, a := range p.Adapters {
		d.failf(sub(path, labelled("adapter", a.Name)), "adapter %q: no supervisor loads adapters into pods; have the pods load it (vLLM: --lora-modules), and leave the block out", a.Name)
	}
	for _, name := range notOfEvictions {
		if at := sub(sub(path, "rotation"), name); d.written(at) {
			d.failf(at, "rotation.%s: pods are rotated by eviction, one after the other, and their owner replaces them; leave it out", name)
		}
	}
	for _, w := range p.Workers {
		if !d.written(sub(path, "workers")) {
			d.failf(sub(path, labelled("worker", w.Name)), "worker %q: the workers of a kubernetes pool are the pods that its selector or inference_pool finds; leave the block out", w.Name)
		}
	}
	selector, pool := d.written(sub(path, "selector")), d.written(sub(path, "inference_pool"))
	switch {
	case selector && pool:
		d.failf(sub(path, "selector"), "selector and inference_pool: an InferencePool has a selector of its own; give one of them")
	case !selector && !pool:
		d.failf(path, `pool %q: the kubernetes driver takes a selector such as "app=vllm", or the name of an inference_pool`, p.Name)
	}
	if port := d.written(sub(path, "port")); pool && port {
		d.failf(sub(path, "port"), "port: the InferencePool names the ports in targetPorts; leave it out")
	} else if selector && !pool && !port {
		d.failf(path, `pool %q: beside a selector, port says where the pods' engines listen, such as 8000`, p.Name)
	}
	if at := sub(path, "selector"); selector && !selectors.MatchString(p.Pods.Selector) {
		d.failf(at, `selector is %s; write labels such as "app=vllm,tier!=test" or "app in (vllm, sglang)"`, d.show(at, p.Pods.Selector))
	}
	if at := sub(path, "inference_pool"); pool && (len(p.Pods.InferencePool) > 253 || !objectName.MatchString(p.Pods.InferencePool)) {
		d.failf(at, `inference_pool is %s; write the name of an InferencePool, such as "chat"`, d.show(at, p.Pods.InferencePool))
	}
	if at := sub(path, "namespace"); d.written(at) && !namespaceName.MatchString(p.Pods.Namespace) {
		d.failf(at, `namespace is %s; write a namespace's name, such as "models", or leave it out for the program's own`, d.show(at, p.Pods.Namespace))
	}
}

// OfPods reports whether a pool's workers are pods of a cluster.
func (p *Pool) OfPods() bool { return p.Driver == "kubernetes" }
