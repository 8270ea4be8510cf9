package kube

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Pod is what of a pod matters to those who send it requests.
type Pod struct {
	Metadata struct {
		Name              string            `json:"name"`
		UID               string            `json:"uid"`
		Annotations       map[string]string `json:"annotations"`
		CreationTimestamp time.Time         `json:"creationTimestamp"`
		DeletionTimestamp *time.Time        `json:"deletionTimestamp"`
		GraceSeconds      *int64            `json:"deletionGracePeriodSeconds"`
	} `json:"metadata"`
	Spec struct {
		GraceSeconds int64 `json:"terminationGracePeriodSeconds"`
	} `json:"spec"`
	Status struct {
		Phase      string `json:"phase"`
		PodIP      string `json:"podIP"`
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
		Containers []struct {
			RestartCount int `json:"restartCount"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

// activePorts narrows the ports of one pod.
const activePorts = "inference.networking.k8s.io/active-ports"

// Member is one port of one pod, at which an engine answers.
type Member struct {
	Name       string // the pod's, with the port where it has several
	Pod        string // the pod's name
	Address    string // ip:port
	Generation uint64 // rises with each pod of the name and each restart in it
	Ready      bool
	Leaving    bool      // the pod is being deleted
	Drained    bool      // it is about to be replaced
	Until      time.Time // its requests may run until then, where Leaving or Drained
}

// Ready reports whether the kubelet finds that the pod can serve.
func (p *Pod) Ready() bool {
	for _, c := range p.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}

// Ended reports whether the pod will never serve again.
func (p *Pod) Ended() bool { return p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed" }

// Restarts is how often the pod's containers were started again.
func (p *Pod) Restarts() (n int) {
	for _, c := range p.Status.Containers {
		n += max(c.RestartCount, 0)
	}
	return n
}

// Mark is until when the pod is drained; the zero time: it is not.
func (p *Pod) Mark() time.Time {
	until, err := time.Parse(time.RFC3339Nano, p.Metadata.Annotations[drainMark])
	if err != nil {
		return time.Time{} // no mark of ours
	}
	return until
}

// restarts is how many bits of a generation count the restarts in one pod.
const restarts = 16

// SamePod reports whether two generations of a name are those of one pod.
func SamePod(a, b uint64) bool { return a>>restarts == b>>restarts }

// Members are the engines of pods, each at those of the ports that its pod has open, in
// the order of their names. Pods that have ended, and those without an address, have
// none.
func Members(pods map[string]Pod, ports []int) (all []Member) {
	newest := map[string]time.Time{} // a pod of a name that comes again may be there with the last one
	for _, p := range pods {
		if t := p.Metadata.CreationTimestamp; t.After(newest[p.Metadata.Name]) {
			newest[p.Metadata.Name] = t
		}
	}
	for _, p := range pods {
		ip, err := netip.ParseAddr(p.Status.PodIP)
		if err != nil || p.Metadata.Name == "" || p.Ended() ||
			p.Metadata.CreationTimestamp.Before(newest[p.Metadata.Name]) {
			continue
		}
		for _, port := range p.open(ports) {
			m := p.member()
			m.Address = net.JoinHostPort(ip.Unmap().String(), strconv.Itoa(port))
			if len(ports) > 1 {
				m.Name += "-" + strconv.Itoa(port)
			}
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(all, func(a, b Member) bool { return a.Name == b.Name })
}

// open are those of the ports that the pod has engines at.
func (p *Pod) open(ports []int) []int {
	given, narrowed := p.Metadata.Annotations[activePorts]
	if !narrowed {
		return ports
	}
	var out []int
	for s := range strings.SplitSeq(given, ",") {
		if n, err := strconv.Atoi(strings.TrimSpace(s)); err == nil && slices.Contains(ports, n) && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// member is what the pod says of itself.
func (p *Pod) member() Member {
	m := Member{Name: p.Metadata.Name, Pod: p.Metadata.Name, Generation: uint64(max(p.Metadata.CreationTimestamp.Unix(), 0)) << restarts, Ready: p.Ready()}
	m.Generation |= uint64(min(p.Restarts(), 1<<restarts-1))
	if until := p.Mark(); !until.IsZero() {
		m.Drained, m.Until = true, until
	}
	if t := p.Metadata.DeletionTimestamp; t != nil {
		m.Leaving, m.Until = true, *t
		if s := p.Metadata.GraceSeconds; s != nil {
			// The second half of its grace is for the engine's own end.
			m.Until = t.Add(-time.Duration(*s) * time.Second / 2)
		}
	}
	return m
}
