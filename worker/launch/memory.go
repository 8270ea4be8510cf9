package launch

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"roundhouse/kernels"
	"roundhouse/kernels/cpu"
	"roundhouse/worker"
	"roundhouse/worker/device"
	"roundhouse/worker/model"
)

// memory is what a model computes in: a backend with weights, pages and plan.
// A worker that sleeps has none of it, and reads the model's files again when
// it wakes.
type memory struct {
	o       Options
	specs   []kernels.KVSpec
	context int             // tokens of the longest sequence
	pages   []kernels.KV    // as specs say
	backend kernels.Backend // nil: asleep
	log     *slog.Logger
	total   int64              // bytes of the machine's memory that all of it takes; 0: of a device's own
	room    func() device.Room // that the machine leaves now

	tower    []worker.Slice               // nil: the model sees nothing, or asleep
	places   atomic.Pointer[model.Places] // that the tower was loaded with last; read beside the engine
	adapters *model.Adapters              // nil: no room for any, or asleep
}

// compile loads a model's weights into a backend and plans its steps. It ends early
// with an error of stop, unless that is nil.
func (m *memory) compile(name string, md *model.Model, be kernels.Backend, packed cpu.Cache, stop func() error) (kernels.Executable, error) {
	o := &m.o
	built, err := md.Build(be, model.BuildOptions{Format: format(o), KV: m.specs, Progress: newProgress(o.Terminal, m.log, time.Now).step, Stop: stop})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	keepPacked(be, packed, m.log)
	limits := o.limits(md.Config())
	limits.Context = m.context
	exec, err := be.Compile(built.Program, limits)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if m.tower, err = o.Sight.compile(be, md, built.Tower); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	m.places.Store(built.Places)
	m.backend, m.adapters, m.pages = be, built.Adapters, built.KV
	return exec, nil
}

// Release implements worker.Memory.
func (m *memory) Release() error {
	err := m.Close()
	m.log.Info("asleep: weights and KV cache are given back")
	return err
}

// Load implements worker.Memory.
func (m *memory) Load() (_ kernels.Executable, err error) {
	began := time.Now()
	name, _, md, err := openModel(&m.o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, md.Close()) }()
	if err := prepare(&m.o, md); err != nil {
		return nil, err
	}
	packed := packedCache(&m.o, md)
	be, err := openBackend(&m.o, packed)
	if err != nil {
		return nil, err
	}
	if err := m.fits(); err != nil {
		return nil, errors.Join(err, be.Close())
	}
	exec, err := m.compile(name, md, be, packed, nil)
	if err != nil {
		return nil, errors.Join(err, be.Close())
	}
	m.log.Info("awake", "seconds", fmt.Sprintf("%.2f", time.Since(began).Seconds()))
	return exec, nil
}

// fits reports that others have taken the memory of a worker that slept. It wakes with the
// cache that it had, since what waits was admitted for that; the kernel would kill it for
// the memory, with all that waits.
func (m *memory) fits() error {
	room := m.room()
	if m.total == 0 || room.Bytes == 0 || m.total <= room.Bytes-spare(room.Bytes) {
		return nil
	}
	return fmt.Errorf("%w: weights, a step and the KV cache take %s, and %s leaves %s; free some and wake it again, or start it anew with a smaller cache (--kv-cache-memory-bytes)", worker.ErrNoRoom, gib(m.total), room.Limit, gib(room.Bytes))
}

// Close gives back what is held.
func (m *memory) Close() error {
	if m.backend == nil {
		return nil
	}
	be := m.backend
	m.backend, m.adapters, m.pages, m.tower = nil, nil, nil, nil
	return be.Close()
}
