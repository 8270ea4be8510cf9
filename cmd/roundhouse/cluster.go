package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"sync"
	"time"

	"roundhouse/balancer"
	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
	"roundhouse/configs"
	"roundhouse/kube"
	"roundhouse/supervisor/pods"
)

// cluster finds the workers of those pools whose driver is kubernetes. What it saw last
// holds, whatever becomes of the API server.
type cluster struct {
	account string // the folder of the account; empty: a pod's own
	client  *kube.Client
	known   chan struct{} // closed once every pool has been seen

	mu       sync.Mutex
	pools    map[string]*podPool
	holder   string     // this door, as Leases name it
	times    pods.Times // of rotations; zero: the usual
	log      *slog.Logger
	running  sync.WaitGroup // the rotators
	door     *balancer.Door
	ctx      context.Context
	complete bool  // known is closed
	untaken  error // why the door did not take the workers up
}

// podPool is what is seen of one pool.
type podPool struct {
	from    configs.Pool
	rotator *pods.Rotator // nil: nobody is to rotate the pods
	expiry  *time.Timer   // of the marks of pods that are to be replaced
	end     context.CancelFunc
	seen    bool
	members []kube.Member
	fault   error

	unrotated error // why its pods cannot be rotated
}

func newCluster(account string, times pods.Times) *cluster {
	return &cluster{account: account, times: times, known: make(chan struct{}), pools: map[string]*podPool{}, holder: holderName()}
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
func (c *cluster) start(ctx context.Context, d *balancer.Door, cfg *configs.Config, log *slog.Logger) {
	c.door, c.ctx, c.log = d, ctx, log
	d.Await(true)
	c.follow(cfg)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.complain()
}

// wait waits until the rotators have given their Leases away.
func (c *cluster) wait() { c.running.Wait() }

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
		if was != nil && was.from.Pods == p.Pods && reflect.DeepEqual(was.from.Rotation, p.Rotation) {
			continue
		}
		now := &podPool{from: *p}
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
	from := p.from.Pods
	k := &kube.Pool{
		Client: c.client, Namespace: from.Namespace, Selector: from.Selector, Ports: []int{from.Port}, Inference: from.InferencePool,
		Changed: func(members []kube.Member) {
			c.mu.Lock()
			if c.pools[name] != p {
				c.mu.Unlock()
				return
			}
			p.seen, p.members = true, members
			c.expire(p)
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
	if p.rotator = c.rotator(name, p); p.rotator != nil {
		k.Pods = p.rotator.See
		c.running.Go(func() { p.rotator.Run(ctx) })
	}
	go k.Run(ctx)
}

// holds is how long after its time a mark still keeps requests from a pod: whoever made it
// may be gone for good.
const holds = 15 * time.Minute

// expire has the door look again once the first of a pool's marks holds no more. c.mu is
// held.
func (c *cluster) expire(p *podPool) {
	if p.expiry != nil {
		p.expiry.Stop()
	}
	first := time.Duration(math.MaxInt64)
	for _, m := range p.members {
		if left := time.Until(m.Until) + holds; m.Drained && left > 0 {
			first = min(first, left)
		}
	}
	if first < math.MaxInt64 {
		p.expiry = time.AfterFunc(first, func() { c.taken(c.door.Refind()) })
	}
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
		faults = append(faults, p.fault, p.unrotated)
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
		case m.Drained && time.Since(m.Until) < holds:
			w.State, w.Reason, w.Deadline = phase.Draining, "its pod is about to be replaced", &m.Until
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
