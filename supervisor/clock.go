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
	Zero time.Time `json:"zero"` // what the wall's clock said when the machine began
}

// resume returns a clock that goes on from an earlier one. After another boot
// it begins anew, and the deadlines of before are judged by the wall's clock.
func (c clock) resume() clock {
	boot := bootID()
	if c.Boot == boot && boot != "" {
		return c
	}
	return clock{Boot: boot, Zero: time.Now().Round(0).Add(-sinceBoot())}
}

// Now is the time that never jumps.
func (c clock) Now() time.Time { return c.Zero.Add(sinceBoot()) }

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

// sinceBoot counts the time that the machine slept as well.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("BUG: no boot clock: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
