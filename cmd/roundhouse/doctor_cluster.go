package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"roundhouse/configs"
	"roundhouse/kube"
)

// cluster reports whether the pools of pods can be followed and rotated with this account.
func (d *doctor) cluster(ctx context.Context) {
	for i := range d.cfg.Pools {
		if p := &d.cfg.Pools[i]; p.OfPods() {
			if d.kube == nil {
				at, err := kube.InPod(d.env)
				if err == nil {
					d.kube, err = kube.New(kube.Options{URL: at, Folder: d.account})
				}
				if err != nil {
					d.note("warn", "cluster", "run it where the door runs: kubectl exec deploy/roundhouse -- roundhouse doctor -c FILE", "pool %q: %v", p.Name, err)
					return
				}
			}
			d.podPool(ctx, p)
		}
	}
}

// podPool looks at one pool of pods.
func (d *doctor) podPool(ctx context.Context, p *configs.Pool) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	namespace, check := cmp.Or(p.Pods.Namespace, d.kube.Namespace), "pool "+p.Name
	lacks := false
	for _, right := range kube.Rights(p.Pods.InferencePool != "", p.Pods.Rotates) {
		may, err := d.kube.May(ctx, namespace, right)
		if err != nil {
			d.note("fail", check, "", "what this account may do is not known: %v", err)
			return
		}
		if !may {
			lacks = true
			d.note("fail", check, "the Roles of deploy/kubernetes have what it takes: base, overlays/picker, overlays/rotation", "the account may not %s in namespace %s", right, namespace)
		}
	}
	if lacks {
		return
	}
	pool := kube.Pool{Client: d.kube, Namespace: namespace, Selector: p.Pods.Selector, Inference: p.Pods.InferencePool}
	names, err := pool.Selected(ctx)
	switch {
	case err != nil:
		d.note("fail", check, "", "its pods: %v", err)
		return
	case len(names) == 0:
		d.note("warn", check, "compare the selector with the pods' labels", "no pod is selected in namespace %s", namespace)
		return
	}
	d.note("ok", check, "", "%s in namespace %s; the account has the rights it takes", count(len(names), "pod"), namespace)
	if p.Pods.Rotates {
		d.budgets(ctx, check, namespace, names)
	}
}

// budgets says which PodDisruptionBudgets make a rotation impossible.
func (d *doctor) budgets(ctx context.Context, check, namespace string, names []string) {
	found, err := d.kube.Budgets(ctx, namespace, names)
	if err != nil {
		d.note("warn", check, "", "its PodDisruptionBudgets are not known: %v", err)
		return
	}
	said := map[string]bool{}
	for _, pod := range slices.Sorted(maps.Keys(found)) {
		var all []string
		for _, b := range found[pod] {
			all = append(all, b.Metadata.Name)
			if why := b.Never(); why != "" && !said[b.Metadata.Name] {
				said[b.Metadata.Name] = true
				d.note("fail", check, "set maxUnavailable = 1, or remove the rotation block", "the PodDisruptionBudget %s allows no eviction ever: %s; no rotation can begin", b.Metadata.Name, why)
			}
		}
		if both := strings.Join(all, " and "); len(all) > 1 && !said[both] {
			said[both] = true
			d.note("fail", check, "keep one of them", "the PodDisruptionBudgets %s select the same pods: the API server evicts none of them", both)
		}
	}
}
