package bench

import (
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
)

// Usage is what the client itself took: if it was short of processor time, its
// latencies are its own.
type Usage struct {
	Processor time.Duration // user and system
	Wall      time.Duration
	Pauses    time.Duration // of the garbage collector
	Cores     int

	at time.Time
}

func usageNow() Usage {
	u := Usage{at: time.Now(), Cores: runtime.GOMAXPROCS(0)}
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) == nil {
		u.Processor = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	u.Pauses = gc.PauseTotal
	return u
}

func (u Usage) since(before Usage) Usage {
	return Usage{Processor: u.Processor - before.Processor, Wall: u.at.Sub(before.at), Pauses: u.Pauses - before.Pauses, Cores: u.Cores}
}

// Share is how much of its cores the client took.
func (u Usage) Share() float64 {
	if u.Wall <= 0 {
		return 0
	}
	return u.Processor.Seconds() / u.Wall.Seconds() / float64(u.Cores)
}
