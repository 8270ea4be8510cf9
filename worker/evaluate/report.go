package evaluate

import (
	"roundhouse/kernels/measure"
	"roundhouse/worker/device"
)

// Report is everything about one machine.
type Report struct {
	Schema     int                `json:"schema"`
	Version    string             `json:"version"`
	Taken      string             `json:"taken"` // RFC 3339
	Short      bool               `json:"short"` // small sizes: whether it works, not how fast
	Machine    Machine            `json:"machine"`
	Load       Load               `json:"load"`
	Memory     []Path             `json:"memory"`
	Sums       []Sum              `json:"sums"`
	Devices    []Device           `json:"devices"`
	Transfers  []measure.Transfer `json:"transfers"`
	Failures   []string           `json:"failures"` // measurements that could not be taken
	Suspicions []Suspicion        `json:"suspicions"`
}

// Machine is what there is.
type Machine struct {
	Processor string          `json:"processor"` // its name
	Nodes     []Node          `json:"nodes"`
	Cores     int             `json:"cores"` // that may be used
	Quota     float64         `json:"quota"` // processors of the control group; 0: no limit
	Clock     device.CPUClock `json:"clock"`
	HugePages string          `json:"huge_pages"` // the kernel's rule; empty: unknown
	Cards     []Card          `json:"cards"`
}

// Node is one memory node.
type Node struct {
	ID          int    `json:"id"`
	CPUs        string `json:"cpus"` // that may be used
	MemoryBytes int64  `json:"memory_bytes"`
}

// Card is one GPU.
type Card struct {
	PCI         string       `json:"pci"`
	Product     string       `json:"product"`
	Driver      string       `json:"driver"`
	Node        int          `json:"node"` // -1: unknown
	MemoryBytes int64        `json:"memory_bytes"`
	Link        *device.Link `json:"link"` // nil: unknown
	Clock       device.Clock `json:"clock"`
	Usable      bool         `json:"usable"`
}

// Path is memory of one node, from the processors of another.
type Path struct {
	CPUs    int     `json:"cpus"`    // their node
	Memory  int     `json:"memory"`  // the memory's node
	Threads int     `json:"threads"` // a core each
	Rate    float64 `json:"rate"`    // bytes a second of a copy, read and written together
	Latency float64 `json:"latency"` // seconds of one read that waits for the last
}

// Sum is an all-reduce over threads of the processors: what tensor parallelism over
// memory nodes does after every layer.
type Sum struct {
	Ranks   int     `json:"ranks"`
	Bytes   int64   `json:"bytes"` // of each rank's vector
	Seconds float64 `json:"seconds"`
}

// Rate is what each rank's link would have to carry in a ring.
func (s Sum) Rate() float64 {
	return 2 * float64(s.Ranks-1) / float64(s.Ranks) * float64(s.Bytes) / s.Seconds
}

// Device is what the kernels do on one device.
type Device struct {
	Name    string            `json:"name"`    // "cpu", or as --device names it
	Title   string            `json:"title"`   // the backend's own words
	Copy    float64           `json:"copy"`    // bytes a second of a bare copy
	Linears []measure.Figures `json:"linears"` // by format, one row and many
}

// Load is what else the machine did meanwhile.
type Load struct {
	Busy   float64 `json:"busy"`   // processors that others kept busy before the first measurement
	Stolen float64 `json:"stolen"` // share of the time that the hypervisor gave to others
	Heat   int64   `json:"heat"`   // times that heat slowed a processor down meanwhile
}

// Suspicion is something that does not fit, and what to do about it.
type Suspicion struct {
	About  string `json:"about"` // "gpu 0000:03:00.0", "node 1", "cpus", "machine"
	Text   string `json:"text"`
	Remedy string `json:"remedy"`
}
