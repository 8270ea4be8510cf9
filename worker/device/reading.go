package device

import "math"

// Reading is what a GPU says of itself at one time. NaN is unknown: an older
// kernel says less, and some figures need two readings.
type Reading struct {
	MemoryTotal       float64 // bytes
	MemoryUsed        float64 // bytes, of the processes that this one may look at
	MemoryFree        float64 // bytes; unknown where processes are hidden from this one
	Utilization       float64 // share of the time, 0 to 1, in which the busiest kind of engine computed
	Frequency         float64 // hertz
	Temperature       float64 // of the chip, degrees Celsius
	MemoryTemperature float64 // degrees Celsius
	Power             float64 // watts
	Energy            float64 // joules since the driver was loaded
}

// unknown is a reading of which nothing is known.
func unknown() Reading {
	n := math.NaN()
	return Reading{n, n, n, n, n, n, n, n, n}
}

// Figure is one known number of a reading.
type Figure struct {
	Name    string // as in metrics, without the prefix: "memory_used_bytes"
	Help    string
	Counter bool // it only grows
	Value   float64
}

// Figures lists what is known, always in the same order.
func (r Reading) Figures() []Figure {
	all := []Figure{
		{"memory_total_bytes", "Memory of the device.", false, r.MemoryTotal},
		{"memory_used_bytes", "Memory of the device that processes hold, as far as this one may see them.", false, r.MemoryUsed},
		{"memory_free_bytes", "Memory of the device that nobody holds.", false, r.MemoryFree},
		{"utilization_ratio", "Share of the time since the last reading in which the busiest kind of engine computed.", false, r.Utilization},
		{"frequency_hertz", "Clock of the device.", false, r.Frequency},
		{"temperature_celsius", "Temperature of the chip.", false, r.Temperature},
		{"memory_temperature_celsius", "Temperature of the device's memory.", false, r.MemoryTemperature},
		{"power_watts", "Power that the device takes.", false, r.Power},
		{"energy_joules_total", "Energy that the device has taken since its driver was loaded.", true, r.Energy},
	}
	known := all[:0]
	for _, f := range all {
		if !math.IsNaN(f.Value) {
			known = append(known, f)
		}
	}
	return known
}
