package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Pool is a pool of pods, by their labels or by an InferencePool.
type Pool struct {
	Client    *Client
	Namespace string // empty: the program's own
	Selector  string // a label selector
	Ports     []int
	Inference string // the name of an InferencePool, which says selector and ports
	// Changed takes the pool's engines whenever they have changed, the first time once
	// they are known.
	Changed func([]Member)
	// Pods takes the pods themselves, by their UIDs, whenever one has changed. It must not
	// keep the map. Nil: nobody asks.
	Pods func(map[string]Pod)
	// Fault is told why the pool is not in view, and nil whenever it is. What was seen
	// last holds meanwhile.
	Fault func(error)

	mu     sync.Mutex
	last   []Member
	said   bool
	faults [2]error      // of the InferencePool, of the pods
	pause  time.Duration // before the server is asked again, the first time; 0: as usual

	selector string // as the InferencePool says
	ports    []int
	end      context.CancelFunc // of the watch of its pods
	ended    chan struct{}
}

// inferencePool is what of an InferencePool says which pods are its.
type inferencePool struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		TargetPorts []struct {
			Number int `json:"number"`
		} `json:"targetPorts"`
	} `json:"spec"`
}

// Run keeps the pool in view until ctx ends.
func (p *Pool) Run(ctx context.Context) {
	if p.Namespace == "" {
		p.Namespace = p.Client.Namespace
	}
	if p.Namespace == "" {
		p.note(0, errors.New("the program's own namespace is not known: its account has none; name one in the pool"))
		<-ctx.Done()
		return
	}
	if p.Inference == "" {
		p.pods(ctx, p.Selector, p.Ports)
		return
	}
	var broken error // what is wrong with the InferencePool itself, while it is in view
	w := Watch[inferencePool]{Client: p.Client, pause: p.pause,
		Path:  "/apis/inference.networking.k8s.io/v1/namespaces/" + url.PathEscape(p.Namespace) + "/inferencepools",
		Query: url.Values{"fieldSelector": {"metadata.name=" + p.Inference}},
		Seen: func(all map[string]inferencePool) {
			broken = p.follow(ctx, all)
			p.note(0, broken)
		},
		Fault: func(err error) {
			if err == nil {
				err = broken
			}
			p.note(0, err)
		},
	}
	w.Run(ctx)
	p.stop()
}

// note tells how one of the two watches does.
func (p *Pool) note(which int, err error) {
	p.mu.Lock()
	p.faults[which] = err
	err = errors.Join(p.faults[:]...)
	p.mu.Unlock()
	p.Fault(err)
}

// follow watches the pods that the InferencePool selects; what is wrong with it keeps
// those that it selected before.
func (p *Pool) follow(ctx context.Context, all map[string]inferencePool) error {
	for _, ip := range all {
		if ip.Metadata.Name != p.Inference {
			continue
		}
		selector, ports := ip.selects()
		if selector == "" || len(ports) == 0 {
			return fmt.Errorf("the InferencePool %s/%s has no selector.matchLabels or no targetPorts", p.Namespace, p.Inference)
		}
		if selector == p.selector && slices.Equal(ports, p.ports) {
			return nil
		}
		p.stop()
		pods, end := context.WithCancel(ctx)
		p.selector, p.ports, p.end, p.ended = selector, ports, end, make(chan struct{})
		go func(ended chan struct{}) {
			defer close(ended)
			p.pods(pods, selector, ports)
		}(p.ended)
		return nil
	}
	return fmt.Errorf("there is no InferencePool %s/%s", p.Namespace, p.Inference)
}

// stop ends the watch of an InferencePool's pods.
func (p *Pool) stop() {
	if p.end != nil {
		p.end()
		<-p.ended
	}
}

// selects is the pool's label selector and ports.
func (ip *inferencePool) selects() (selector string, ports []int) {
	var labels []string
	for _, k := range slices.Sorted(maps.Keys(ip.Spec.Selector.MatchLabels)) {
		labels = append(labels, k+"="+ip.Spec.Selector.MatchLabels[k])
	}
	for _, t := range ip.Spec.TargetPorts {
		if t.Number > 0 && t.Number < 1<<16 {
			ports = append(ports, t.Number)
		}
	}
	return strings.Join(labels, ","), ports
}

// pods watches the pods of a selector.
func (p *Pool) pods(ctx context.Context, selector string, ports []int) {
	w := Watch[Pod]{Client: p.Client, pause: p.pause,
		Path:  "/api/v1/namespaces/" + url.PathEscape(p.Namespace) + "/pods",
		Query: url.Values{"labelSelector": {selector}},
		Seen: func(all map[string]Pod) {
			if p.Pods != nil {
				p.Pods(all)
			}
			members := Members(all, ports)
			if p.said && slices.Equal(members, p.last) {
				return
			}
			p.said, p.last = true, members
			p.Changed(members)
		},
		Fault: func(err error) { p.note(1, err) },
	}
	w.Run(ctx)
}
