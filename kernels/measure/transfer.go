package measure

import "time"

// The ways that bytes go.
const (
	Upload   = "host to device"
	Download = "device to host"
	Direct   = "device to device, as the driver does it"
	ByHost   = "device to device, through the host"
	Reduce   = "all-reduce through the host"
)

// Transfer is how long bytes took one way.
type Transfer struct {
	Way     string  `json:"way"`
	From    string  `json:"from"`            // the device's address, or its name where it has none; "host"
	To      string  `json:"to"`              // as From; of an all-reduce, empty
	Ranks   int     `json:"ranks,omitempty"` // of an all-reduce
	Bytes   int64   `json:"bytes"`           // of one device's
	Seconds float64 `json:"seconds"`         // the median
}

// Rate is bytes a second. That of an all-reduce is what each device's link would have to
// carry if every byte crossed it as in a ring: 2(n-1)/n times the vector.
func (t Transfer) Rate() float64 {
	r := float64(t.Bytes) / t.Seconds
	if t.Way == Reduce {
		r *= 2 * float64(t.Ranks-1) / float64(t.Ranks)
	}
	return r
}

// TransferOptions bound a measurement.
type TransferOptions struct {
	Sizes []int64       // nil: 64 KiB, 1 MiB and 64 MiB
	Time  time.Duration // for each; 0: a fifth of a second
}
