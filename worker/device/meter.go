package device

import (
	"math"
	"path/filepath"
	"sync"
	"time"
)

// least is the shortest time that rates are taken over: figures of less jump about.
const least = 500 * time.Millisecond

// Meter reads one GPU again and again. What is a rate (power where the driver counts
// energy, utilisation) is taken between two readings. It may be used by several
// goroutines.
type Meter struct {
	gpu   GPU
	sysfs string
	proc  string

	mu     sync.Mutex
	at     time.Time // of the reading that rates began at
	energy float64
	times  map[engineKey]engineTime
	power  float64 // the last rates
	share  float64
}

// NewMeter begins to watch a GPU of Intel's; sysfs and proc are usually /sys and /proc.
func NewMeter(sysfs, proc string, gpu GPU) *Meter {
	return &Meter{gpu: gpu, sysfs: sysfs, proc: proc, power: math.NaN(), share: math.NaN()}
}

// Read says what is known now. The first reading has no rates.
func (m *Meter) Read(now time.Time) Reading {
	r, path := unknown(), filepath.Join(m.sysfs, "bus/pci/devices", m.gpu.PCI)
	hwmon(path, &r)
	r.Frequency = frequency(path)
	m.memory(path, &r)

	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at.IsZero() || now.Sub(m.at) >= least {
		m.rates(r.Energy, now)
	}
	if math.IsNaN(r.Power) {
		r.Power = m.power
	}
	r.Utilization = m.share
	return r
}

// memory fills in what is held. A driver that tells what is available is believed, as
// Intel's own i915 does; otherwise what processes hold is added up.
func (m *Meter) memory(path string, r *Reading) {
	if m.gpu.MemoryBytes > 0 {
		r.MemoryTotal = float64(m.gpu.MemoryBytes)
	}
	if free := first(filepath.Join(path, "drm/card*/lmem_avail_bytes")); !math.IsNaN(free) && !math.IsNaN(r.MemoryTotal) {
		r.MemoryFree, r.MemoryUsed = free, r.MemoryTotal-free
		return
	}
	holders, complete := Holders(m.proc, m.gpu.PCI)
	if len(holders) == 0 && !complete {
		return
	}
	used := 0.0
	for _, h := range holders {
		if h.Bytes < 0 {
			return
		}
		used += float64(h.Bytes)
	}
	r.MemoryUsed = used
	if complete {
		r.MemoryFree = max(0, r.MemoryTotal-r.MemoryUsed)
	}
}

// rates takes the rates since the reading before, and begins anew. Utilisation is what
// engines worked, never what the chip did not sleep: with a display it is awake and idle.
func (m *Meter) rates(energy float64, now time.Time) {
	times := engineTimes(m.proc, m.gpu.PCI)
	if seconds := now.Sub(m.at).Seconds(); !m.at.IsZero() {
		m.power, m.share = math.NaN(), math.NaN()
		if energy >= m.energy {
			m.power = (energy - m.energy) / seconds
		}
		if share, ok := busiest(m.times, times, seconds); ok {
			m.share = share
		}
	}
	m.at, m.energy, m.times = now, energy, times
}
