package kernels

import (
	"fmt"
	"strings"
	"time"
)

// Timed is an executable that can record where the time of a step goes.
type Timed interface {
	// Time has the steps from the next one on recorded, or no longer. It is called
	// between steps.
	Time(on bool)

	// Spans are the times of the latest step's parts. They are valid until the next step.
	Spans() []Span
}

// Span is a part of a step on one thread, or on the device.
type Span struct {
	Op     string
	Thread int
	Began  time.Time
	Ended  time.Time
}

// NameOf is an operation for people: its kind, and its widths if these make most
// of its cost.
func (p *Program) NameOf(op Op) string {
	kind := strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", op), "*kernels."))
	switch op := op.(type) {
	case *Linear:
		return fmt.Sprintf("%s %d to %d", kind, p.Values[op.In].Width, p.Values[op.Out].Width)
	case *MoE:
		return fmt.Sprintf("%s %d to %d", kind, p.Values[op.In].Width, p.Values[op.Out].Width)
	}
	return kind
}
