package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"roundhouse/balancer"
	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
	"roundhouse/configs"
	"roundhouse/kube"
)

// cluster finds the workers of those pools whose driver is kubernetes. What it saw last
// holds, whatever becomes of the API server.
type cluster struct {
	account string // the folder of the account; empty: a pod's own
	client  *kube.Client
	known   chan struct{} // closed once every pool has been seen

	mu       sync.Mutex
	pools    map[string]*podPool
	door     *balancer.Door
	ctx      context.Context
	complete bool  // known is closed
	untaken  error // why the door did not take the workers up
}

// podPool is what is seen of one pool.
type podPool struct {
	from    configs.Pods
	end     context.CancelFunc
	seen    bool
	members []kube.Member
	fault   error
}

func newCluster(account string) *cluster {
	return &cluster{account: account, known: make(chan struct{}), pools: map[string]*podPool{}}
}

// open makes the client, where a configuration has pools of pods.
func (c *cluster) open(cfg *configs.Config, supervised bool, env func(string) (string, bool)) error {
	for i := range cfg.Pools {
		if p := &cfg.Pools[i]; !p.OfPods() {
			continue
		} else if supervised {
			return usageError(`pool %q: driver = "kubernetes" and --socket: a supervisor says which workers there are, and cannot run pods; leave one of them out`, p.Name)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.client != nil {
			return nil
		}
		url, err := kube.InPod(env)
		if err == nil {
			c.client, err = kube.New(kube.Options{URL: url, Folder: c.account})
		}
		if err != nil {
			return fmt.Errorf("pool %q: %w", cfg.Pools[i].Name, err)
		}
		return nil
	}
	return nil
}

// start begins to follow a configuration's pools for a door, until ctx ends.
func (c *cluster) start(ctx context.Context, d *balancer.Door, cfg *configs.Config) {
	c.door, c.ctx = d, ctx
	d.Await(true)
	c.follow(cfg)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.complain()
}

// follow makes the pools that are watched those of a configuration. A pool whose pods are
// selected in another way keeps the workers that it has until the others are seen.
func (c *cluster) follow(cfg *configs.Config) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := map[string]bool{}
	for i := range cfg.Pools {
		p := &cfg.Pools[i]
		if !p.OfPods() {
			continue
		}
		wanted[p.Name] = true
		was := c.pools[p.Name]
		if was != nil && was.from == p.Pods {
			continue
		}
		now := &podPool{from: p.Pods}
		if was != nil {
			was.end()
			now.seen, now.members = was.seen, was.members
		}
		c.pools[p.Name] = now
		c.watch(p.Name, now)
	}
	for name, p := range c.pools {
		if !wanted[name] {
			p.end()
			delete(c.pools, name)
		}
	}
}

// watch keeps a pool in view. c.mu is held.
func (c *cluster) watch(name string, p *podPool) {
	var ctx context.Context
	ctx, p.end = context.WithCancel(c.ctx)
	k := &kube.Pool{
		Client: c.client, Namespace: p.from.Namespace, Selector: p.from.Selector, Ports: []int{p.from.Port}, Inference: p.from.InferencePool,
		Changed: func(members []kube.Member) {
			c.mu.Lock()
			if c.pools[name] != p {
				c.mu.Unlock()
				return
			}
			p.seen, p.members = true, members
			c.mu.Unlock()
			c.taken(c.door.Refind())
		},
		Fault: func(err error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.pools[name] != p {
				return
			}
			if p.fault = err; err != nil {
				p.fault = fmt.Errorf("pool %q: %w", name, err)
			}
			c.complain()
		},
	}
	go k.Run(ctx)
}

// taken notes whether the door has taken the workers up.
func (c *cluster) taken(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.untaken = err
	c.complain()
}

// complain tells the door what is not in view, and whether all has been seen once. c.mu is
// held.
func (c *cluster) complain() {
	all, faults := true, []error{c.untaken}
	for _, p := range c.pools {
		all = all && p.seen
		faults = append(faults, p.fault)
	}
	c.door.NoteCluster(errors.Join(faults...))
	if all && c.untaken == nil && !c.complete {
		c.complete = true
		c.door.Await(false)
		close(c.known)
	}
}

// put puts the pods that were seen last in a worker set, whichever workers it has of their
// pools. It keeps what an operator has drained.
func (c *cluster) put(set *control.WorkerSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range set.Pools {
		pool := &set.Pools[i]
		if p := c.pools[pool.Name]; p != nil && p.seen && pool.Driver == "kubernetes" {
			pool.Workers = podWorkers(p.members, pool.Workers)
		}
	}
}

// podWorkers are pods as a door is told of them. was has the workers that it has.
func podWorkers(members []kube.Member, was []control.Worker) []control.Worker {
	drained := map[string]control.Worker{}
	for _, w := range was {
		if w.State == phase.Draining && w.Reason == byOperator {
			drained[w.Name] = w
		}
	}
	workers := make([]control.Worker, 0, len(members))
	for _, m := range members {
		w := control.Worker{Name: m.Name, URL: "http://" + m.Address, Generation: m.Generation, Kind: "vllm", State: phase.Ready}
		held, there := drained[m.Name]
		switch {
		case m.Leaving:
			w.State, w.Reason, w.Deadline = phase.Draining, "its pod is being deleted", &m.Until
		case there && kube.SamePod(held.Generation, m.Generation):
			w.State, w.Reason, w.Deadline = held.State, held.Reason, held.Deadline
		case !m.Ready:
			w.State, w.Reason = phase.Starting, "its pod is not ready"
		}
		workers = append(workers, w)
	}
	return workers
}

// byOperator is the reason of a drain that a person has asked for.
const byOperator = "operator"

// keepPods leaves pools of pods the workers that they have, until others are seen.
func keepPods(next, now *control.WorkerSet) {
	for i := range next.Pools {
		for _, p := range now.Pools {
			if next.Pools[i].Driver == "kubernetes" && p.Name == next.Pools[i].Name {
				next.Pools[i].Workers = p.Workers
			}
		}
	}
}
