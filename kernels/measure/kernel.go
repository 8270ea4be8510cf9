package measure

import (
	"errors"
	"fmt"
	"math"
	"time"

	"roundhouse/kernels"
)

// Kind is what a kernel is measured for; tuning looks at one kind at a time.
type Kind string

// The kinds.
const (
	OneRow    Kind = "linear, one row"
	ManyRows  Kind = "linear, many rows"
	Attention Kind = "attention"
	Rowwise   Kind = "rowwise"
	Towers    Kind = "convolution"
)

// Options bound a measurement.
type Options struct {
	Size  int           // columns and rows of a matrix; 0: 4096
	Bytes int64         // of weights that a measurement goes round, to be beyond the caches; 0: 256 MiB
	Rows  int           // of many; 0: 512
	Time  time.Duration // for each kernel; 0: half a second
	Kinds []Kind        // nil: all
	Apart bool          // without the matrices that go through the kernel of another one
}

// Short are options that take seconds even on a CPU that stands for a GPU.
func Short() Options {
	return Options{Size: 512, Bytes: 1 << 20, Rows: 32, Time: 50 * time.Millisecond}
}

func (o *Options) complete() {
	if o.Size == 0 {
		o.Size = 4096
	}
	if o.Bytes == 0 {
		o.Bytes = 256 << 20
	}
	if o.Rows == 0 {
		o.Rows = 512
	}
	if o.Time == 0 {
		o.Time = time.Second / 2
	}
}

// Figures are what one kernel did.
type Figures struct {
	Name    string  `json:"name"`
	Kind    Kind    `json:"kind"`
	Bytes   int64   `json:"bytes"` // that have to move through memory
	Flops   int64   `json:"flops"`
	Seconds float64 `json:"seconds"`
}

// Rate is bytes a second.
func (f Figures) Rate() float64 { return float64(f.Bytes) / f.Seconds }

// Speed is operations a second.
func (f Figures) Speed() float64 { return float64(f.Flops) / f.Seconds }

// Copy measures a bare copy of rows from one value to another: the most that memory gives
// on this device, read and written bytes together.
func Copy(b kernels.Backend, o Options) (Figures, error) {
	o.complete()
	width := o.Size
	rows := max(2, int(o.Bytes/8/int64(4*width)))
	s := newScene(b)
	x := s.rows(width, rows)
	y := s.p.New(kernels.Tokens, width)
	const times = 4
	for range times {
		s.p.Do(&kernels.Columns{In: x, Out: y})
		x, y = y, x
	}
	return s.time(Figures{Name: "copy", Kind: Rowwise, Bytes: 8 * int64(rows) * int64(width)}, x, rows, times, o)
}

// Kernels measures every kernel of the kinds that are asked for and reports each as it
// is done. Formats that the backend does not have are left out.
func Kernels(b kernels.Backend, o Options, report func(Figures)) error {
	o.complete()
	for _, k := range o.Kinds {
		if k != OneRow && k != ManyRows && k != Attention && k != Rowwise && k != Towers {
			return fmt.Errorf("there is no kind of kernel %q", k)
		}
	}
	one := func(f Figures, err error) error {
		if errors.Is(err, errors.ErrUnsupported) {
			return nil
		}
		if err == nil {
			report(f)
		}
		return err
	}
	for _, c := range []struct {
		kind Kind
		rows int
	}{{OneRow, 1}, {ManyRows, o.Rows}} {
		for _, m := range matrices() {
			if o.wants(c.kind) && !(o.Apart && m.shared) {
				if err := one(linear(b, o, c.kind, m, c.rows)); err != nil {
					return err
				}
			}
		}
	}
	if o.wants(Attention) {
		for _, rows := range []int{1, o.Rows} {
			if err := one(attention(b, o, rows)); err != nil {
				return err
			}
		}
	}
	for _, c := range []struct {
		kind Kind
		all  []func(kernels.Backend, Options) (Figures, error)
	}{{Rowwise, rowwise}, {Towers, towers}} {
		for _, f := range c.all {
			if o.wants(c.kind) {
				if err := one(f(b, o)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (o *Options) wants(k Kind) bool {
	if o.Kinds == nil {
		return true
	}
	for _, w := range o.Kinds {
		if w == k {
			return true
		}
	}
	return false
}

// Total is the geometric mean of the seconds of some figures, by which two tunings are
// compared; infinite for none.
func Total(all []Figures) float64 {
	if len(all) == 0 {
		return math.Inf(1)
	}
	var sum float64
	for _, f := range all {
		sum += math.Log(f.Seconds)
	}
	return math.Exp(sum / float64(len(all)))
}
