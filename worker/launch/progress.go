package launch

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// IsTerminal reports whether a file is a terminal, where a bar can be drawn.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// How often the progress of a load is told: on a terminal, and in a log.
const (
	barEvery = 100 * time.Millisecond
	logEvery = 2 * time.Second
)

// progress tells how far a load is: as a bar on a terminal, as lines in a log
// otherwise.
type progress struct {
	bar        io.Writer // nil: none
	log        *slog.Logger
	now        func() time.Time
	began      time.Time
	told       time.Time
	everything bool // the bar has reached its end
}

func newProgress(bar io.Writer, log *slog.Logger, now func() time.Time) *progress {
	at := now()
	return &progress{bar: bar, log: log, now: now, began: at, told: at}
}

// step is told of every weight: bytes read so far, and in all.
func (p *progress) step(done, total int64) {
	at, every := p.now(), logEvery
	if p.bar != nil {
		every = barEvery
	}
	last := done >= total && p.bar != nil && !p.everything
	if total <= 0 || at.Sub(p.told) < every && !last {
		return
	}
	p.told = at
	share := min(float64(done)/float64(total), 1)
	seconds := at.Sub(p.began).Seconds()
	rate := float64(done) / max(seconds, 1e-3)
	left := time.Duration(float64(total-done) / max(rate, 1) * float64(time.Second)).Round(time.Second)
	if p.bar == nil {
		p.log.Info("loading weights", "percent", int(100*share), "read", gib(done), "of", gib(total), "left", left.String())
		return
	}
	const width = 30
	full := int(share * width)
	fmt.Fprintf(p.bar, "\rloading weights [%s%s] %3.0f %%  %s of %s  %.1f GB/s  %v left   ", strings.Repeat("=", full), strings.Repeat(" ", width-full),
		100*share, gib(done), gib(total), rate/1e9, left)
	if last {
		p.everything = true
		fmt.Fprintln(p.bar)
	}
}
