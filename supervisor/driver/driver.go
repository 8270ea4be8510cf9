// Package driver is what the supervisor asks of whatever runs workers: start,
// stop, list, logs, and a hint that something changed. Everything that a
// driver knows survives the supervisor: it lies in locks, files, labels.
package driver

import (
	"context"
	"errors"
	"io"
	"time"

	"roundhouse/configs"
	"roundhouse/configs/workerid"
)

// ErrAway is wrapped by what fails because whatever runs the workers does not
// answer: it says nothing of the worker, and is tried again once it does.
var ErrAway = errors.New("the driver does not answer")

// ErrImageGone is wrapped by a start that fails because the image that Spec.Image names
// is there no more.
var ErrImageGone = errors.New("the image is gone")

// Driver runs workers. All methods may be called at once from several
// goroutines and end when their context does.
type Driver interface {
	// Start starts one generation of a worker and returns once its process is
	// there, long before it is ready. A start that fails leaves nothing behind.
	Start(ctx context.Context, spec Spec) error
	// Stop ends a worker's process: politely, and after grace for certain. That
	// it is gone already is no error.
	Stop(ctx context.Context, id string, generation uint64, grace time.Duration) error
	// List returns every worker of this instance that is there, running or
	// ended and not yet replaced. An error means that nothing is known.
	List(ctx context.Context) ([]Instance, error)
	// Logs opens what a worker has written. With follow it goes on until the
	// context ends.
	Logs(ctx context.Context, id string, options LogOptions) (io.ReadCloser, error)
	// Changed delivers a value when List would answer differently. A lost or
	// doubled value does no harm: List is also asked from time to time.
	Changed() <-chan struct{}
	// Close lets go of what watches, and leaves all workers running.
	Close() error
}

// Preparer is a driver that can make sure that a start will work, while the
// last generation still runs: an image is pulled, files are looked for.
// Prepare changes nothing else.
type Preparer interface {
	Prepare(ctx context.Context, spec Spec) error
}

// Resolver is a driver whose images have names that may move.
type Resolver interface {
	// Resolve returns which image a worker's configured name stands for now, as
	// Spec.Image says it.
	Resolve(ctx context.Context, spec Spec) (string, error)
}

// Spec is all that a driver must know to start a worker.
type Spec struct {
	Pool       string            `json:"pool"`
	Name       string            `json:"name"`
	Generation uint64            `json:"generation"`
	Hash       string            `json:"hash"` // of the rest, without the generation
	Engine     configs.Engine    `json:"engine"`
	Container  configs.Container `json:"container"`
	Image      string            `json:"image,omitempty"` // which one the container's name for it stood for at the last preparation; empty: nobody asked
	Port       int               `json:"port"`            // 0: a free one
	Takeover   string            `json:"takeover,omitempty"`
	Place      Place             `json:"place"`
	Grace      time.Duration     `json:"grace"`
}

// ID is the worker's name in full.
func (s Spec) ID() string { return workerid.Of(s.Pool, s.Name) }

// Place is where a worker is to run.
type Place struct {
	GPUs []GPU  `json:"gpus,omitempty"`
	NUMA []int  `json:"numa,omitempty"` // nodes whose memory it takes
	CPUs string `json:"cpus,omitempty"` // kernel list format; empty: any
}

// GPU is one device of a Place.
type GPU struct {
	ID     string `json:"id"`               // PCI address or NVIDIA UUID
	Vendor string `json:"vendor"`           // "intel" or "nvidia"
	Render string `json:"render,omitempty"` // "/dev/dri/renderD128"
	Card   string `json:"card,omitempty"`   // "/dev/dri/card0"
}

// Instance is one worker as its driver finds it.
type Instance struct {
	ID         string
	Generation uint64
	Hash       string
	Running    bool
	URL        string
	PID        int
	Container  string
	Image      string
	Began      time.Time
	Ended      string // how it ended, in words: "exit status 1", "killed (out of memory)"
	OOM        bool
	Killed     bool  // ended by SIGKILL that was not ours, and not for want of memory
	Memory     int64 // bytes of host memory; 0: unknown
	Place      Place
	Released   bool // ended, and its device's memory is free again
	TakenOver  bool // a container that runs already and is taken over as it is

	Node string // the machine that it runs on; empty: this one
	// Leaving says why it will end though nobody here has asked for it; empty: it
	// stays. LeavesIn is how long its requests may still run there.
	Leaving  string
	LeavesIn time.Duration
}

// LogOptions says what of a log is wanted.
type LogOptions struct {
	Tail   int // lines from the end; 0: all
	Follow bool
}
