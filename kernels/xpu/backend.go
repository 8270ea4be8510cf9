package xpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
	"roundhouse/kernels/xpu/cl"
)

// Options choose the device and bound what is taken of it.
type Options struct {
	Device  cl.Device
	Memory  int64  // bytes to use at most; 0: what the device has
	Tuning  Tuning // zero: what `roundhouse-worker tune` stored in Cache, else the table's
	Library *cl.Library
	Cache   string // folder where the driver's results are kept; empty: nowhere
}

// Backend is one GPU.
type Backend struct {
	ctx     *cl.Context
	built   builder
	tuning  Tuning
	memory  int64 // bytes that may be taken
	taken   int64
	arenas  []*cl.Buffer
	used    int64 // dwords of the last arena
	buffers []*cl.Buffer
	execs   []*executable
	counter *cl.Buffer // of bytes moved, in tests
	// mostParts is the constant; tests have less.
	mostParts int
	shared    shared
	dummy     *cl.Buffer // where a kernel wants a buffer that it does not use
}

// New begins to use a device. Its kernels are built as programs ask for them.
func New(o Options) (*Backend, error) {
	ctx, err := o.Library.Open(o.Device)
	if err != nil {
		return nil, err
	}
	b := &Backend{ctx: ctx, tuning: o.Tuning, memory: o.Memory, mostParts: mostParts}
	if b.memory <= 0 {
		b.memory = int64(o.Device.GlobalMemory)
	}
	if b.tuning == (Tuning{}) {
		b.tuning = tuningFor(o.Cache, o.Device)
	}
	b.built = builder{ctx: ctx, modules: Modules(b.tuning), cache: o.Cache, programs: map[string]*cl.Program{}}
	if b.dummy, err = b.buffer(64); err != nil {
		b.Close()
		return nil, err
	}
	if b.tuning.count {
		if b.counter, err = b.buffer(4); err != nil {
			b.Close()
			return nil, err
		}
	}
	return b, nil
}

// Name implements kernels.Backend.
func (b *Backend) Name() string {
	return fmt.Sprintf("xpu %s, %s", b.ctx.Device.Name, b.ctx.Device.Version)
}

// Identity says which device this is: its name, the version of its driver, and its PCI
// address, empty where the driver does not say it.
func (b *Backend) Identity() (name, driver, pci string) {
	d := b.ctx.Device
	return d.Name, d.Driver, d.PCI
}

// DeviceMemory is the memory that the driver says the device has.
func (b *Backend) DeviceMemory() int64 { return int64(b.ctx.Device.GlobalMemory) }

// Built says how each module was built so far: "sample: cache", or SPIR-V, or source.
func (b *Backend) Built() []string { return slices.Clone(b.built.from) }

// take counts memory against the budget.
func (b *Backend) take(bytes int64) error {
	if b.taken+bytes > b.memory {
		return fmt.Errorf("%d MiB more do not fit: %d of %d MiB of %s are taken", bytes>>20, b.taken>>20, b.memory>>20, b.ctx.Device.Name)
	}
	b.taken += bytes
	return nil
}

// Free is the memory that may still be taken.
func (b *Backend) Free() int64 { return b.memory - b.taken }

// buffer sets memory aside until Close.
func (b *Backend) buffer(bytes int64) (*cl.Buffer, error) {
	if err := b.take(bytes); err != nil {
		return nil, err
	}
	buf, err := b.ctx.Buffer(bytes)
	if err != nil {
		return nil, err
	}
	b.buffers = append(b.buffers, buf)
	return buf, nil
}

// release gives a buffer back before Close. The queue is in order, and what was
// enqueued with it holds it until it is done.
func (b *Backend) release(buf *cl.Buffer) {
	b.buffers = slices.DeleteFunc(b.buffers, func(o *cl.Buffer) bool { return o == buf })
	b.taken -= buf.Size
	buf.Release()
}

// room finds a place of n dwords in an arena, 64 bytes aligned.
func (b *Backend) room(n int64) (*cl.Buffer, int64, error) {
	n = (n + 15) &^ 15
	if len(b.arenas) > 0 {
		last := b.arenas[len(b.arenas)-1]
		if b.used+n <= last.Size/4 {
			at := b.used
			b.used += n
			return last, at, nil
		}
	}
	most := int64(1) << 30
	if m := int64(b.ctx.Device.MaxAllocation); m > 0 {
		most = min(most, m)
	}
	size := max(min(int64(1)<<20<<len(b.arenas), most), 4*n)
	buf, err := b.buffer(size)
	if err != nil {
		return nil, 0, err
	}
	b.arenas = append(b.arenas, buf)
	b.used = n
	return buf, 0, nil
}

// Weight implements kernels.Backend.
func (b *Backend) Weight(src kernels.Source, format kernels.Format) (kernels.Weight, error) {
	if err := num.Check(src, format); err != nil {
		return nil, err
	}
	packed, err := pack(src, format)
	if err != nil {
		return nil, err
	}
	arena, base, err := b.room(int64(len(packed.words)))
	if err != nil {
		return nil, fmt.Errorf("weight %s as %v: %w", src.Name, format, err)
	}
	raw := make([]byte, 4*len(packed.words))
	for i, w := range packed.words {
		binary.LittleEndian.PutUint32(raw[4*i:], w)
	}
	if err := arena.Write(4*base, raw); err != nil {
		return nil, err
	}
	w := &weight{format: format, out: src.Out, in: src.In, arena: arena, base: base,
		scales: packed.scales, zeros: packed.zeros, order: -1, group: packed.group, bytes: int64(len(raw))}
	if packed.order >= 0 {
		w.order = base + packed.order
	}
	return w, nil
}

// Close implements kernels.Backend.
func (b *Backend) Close() error {
	err := b.ctx.Finish()
	for _, e := range b.execs {
		e.release()
	}
	for _, buf := range b.buffers {
		buf.Release()
	}
	b.built.release()
	b.ctx.Close()
	return err
}

// turns splits a frequency in radians into turns, as two floats.
func turns(frequency float64) (high, low float32) {
	t := frequency / (2 * math.Pi)
	high = float32(t)
	return high, float32(t - float64(high))
}
