package supervisor

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// clock tells two times. Now never jumps: deadlines are held against it, and a
// successor on the same boot of the machine reads the same one. Wall is the
// clock on the wall, for schedules and for people.
type clock struct {
	Boot string    `json:"boot"` // the boot for which Zero holds
	Zero time.Time `json:"from"` // what the wall's clock said when the steady one began
}

// resume returns a clock that goes on from an earlier one. After another boot
// it begins anew, and the deadlines of before are judged by the wall's clock.
func (c clock) resume() clock {
	boot := bootID()
	if c.Boot == boot && boot != "" && !c.Zero.IsZero() {
		return c
	}
	return clock{Boot: boot, Zero: time.Now().Round(0).Add(-steady())}
}

// Now is the time that never jumps.
func (c clock) Now() time.Time { return c.Zero.Add(steady()) }

// Wall is the time on the wall.
func (c clock) Wall() time.Time { return time.Now().Round(0) }

// OnWall translates a time of Now for people and for the doors.
func (c clock) OnWall(t time.Time) time.Time { return c.Wall().Add(t.Sub(c.Now())) }

func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// steady is the time since the machine began without that which it slept: nobody has
// worked meanwhile, so nobody is late for it. The doors' leases, which they hold by the
// clock of their own process, stand still in a sleep too.
func steady() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("BUG: no steady clock: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
