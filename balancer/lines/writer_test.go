package lines_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"roundhouse/balancer/lines"
)

// output is what a log is written to: it may be stuck, refuse all, or take a part.
type output struct {
	mu    sync.Mutex
	got   bytes.Buffer
	calls int
	at    []time.Time
	stuck chan struct{}
	room  int // bytes that it takes yet; below 0: all
	err   error
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	stuck := o.stuck
	o.mu.Unlock()
	if stuck != nil {
		<-stuck
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls++
	o.at = append(o.at, time.Now())
	n := len(p)
	if o.room >= 0 {
		n = min(n, o.room)
		o.room -= n
	}
	o.got.Write(p[:n])
	if n < len(p) {
		return n, o.err
	}
	return n, nil
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.got.String()
}

func tell(n uint64, why string) []byte { return fmt.Appendf(nil, "dropped %d: %s\n", n, why) }

func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &output{room: -1}
		w := lines.New(o, tell)
		began := time.Now()
		for i := range 20 {
			fmt.Fprintf(w, "line %d\n", i)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(lines.Late)
		synctest.Wait()
		if o.calls != 1 || strings.Count(o.text(), "\n") != 20 || o.at[0].Sub(began) > lines.Late {
			t.Errorf("%d writes at %v of %q", o.calls, o.at[0].Sub(began), o.text())
		}
		time.Sleep(time.Hour)
		if o.calls != 1 {
			t.Errorf("%d writes though nothing was logged", o.calls)
		}
		fmt.Fprintln(w, "the last one")
		w.Close()
		if !strings.HasSuffix(o.text(), "the last one\n") {
			t.Errorf("at the end: %q", o.text())
		}
	})
}

// TestManyGoAtOnce: a batch that is large is not held back.
func TestManyGoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &output{room: -1}
		w := lines.New(o, tell)
		began := time.Now()
		w.Write(append(bytes.Repeat([]byte{'x'}, 100<<10), '\n'))
		synctest.Wait()
		if len(o.at) != 1 || o.at[0] != began {
			t.Errorf("written at %v", o.at)
		}
		w.Close()
	})
}

// TestSlowPipe: while the output takes nothing, who logs does not wait; what does
// not fit is counted, and told once lines go again.
func TestSlowPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &output{room: -1, stuck: make(chan struct{})}
		w := lines.New(o, tell)
		line := append(bytes.Repeat([]byte{'x'}, 1023), '\n')
		began := time.Now()
		for range 16 << 10 {
			w.Write(line)
		}
		if time.Since(began) != 0 {
			t.Errorf("who logs has waited for %v", time.Since(began))
		}
		lost := w.Dropped()
		if lost == 0 || lost >= 16<<10 {
			t.Errorf("%d lines of %d were dropped", lost, 16<<10)
		}
		time.Sleep(time.Minute)
		o.mu.Lock()
		close(o.stuck)
		o.stuck = nil
		o.mu.Unlock()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		fmt.Fprintln(w, "after")
		w.Close()
		got := o.text()
		if n := strings.Count(got, "x\n"); uint64(n)+lost != 16<<10 || w.Dropped() != lost {
			t.Errorf("%d lines are there and %d were dropped, of %d", n, w.Dropped(), 16<<10)
		}
		if !strings.Contains(got, fmt.Sprintf("dropped %d: ", lost)) || !strings.HasSuffix(got, "after\n") {
			t.Errorf("the loss is not told: …%q", got[len(got)-200:])
		}
	})
}

// TestFullDisk: a line that was cut does not swallow the next one, and the loss is
// told without another line.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &output{room: 10, err: errors.New("no space left")}
		w := lines.New(o, tell)
		fmt.Fprint(w, "first\nsecond\nthird\n")
		time.Sleep(lines.Late)
		synctest.Wait()
		if w.Dropped() != 2 {
			t.Errorf("%d lines were dropped", w.Dropped())
		}
		fmt.Fprint(w, "fourth\n")
		time.Sleep(3 * time.Second)
		o.mu.Lock()
		o.room = -1
		o.mu.Unlock()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if want := "first\nseco\ndropped 3: no space left\n"; o.text() != want {
			t.Errorf("got %q; want %q", o.text(), want)
		}
		w.Close()
	})
}

// TestCloseOfStuckOutput ends all the same.
func TestCloseOfStuckOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &output{room: -1, stuck: make(chan struct{})}
		w := lines.New(o, tell)
		fmt.Fprintln(w, "x")
		began := time.Now()
		if w.Close(); time.Since(began) > 10*time.Second {
			t.Errorf("ended after %v", time.Since(began))
		}
		close(o.stuck)
	})
}

func TestNothingIsAllocated(t *testing.T) {
	w := lines.New(&output{room: -1}, tell)
	defer w.Close()
	line := []byte("a line of the log\n")
	w.Write(bytes.Repeat(line, 1000))
	if n := testing.AllocsPerRun(100, func() { w.Write(line) }); n > 0.5 {
		t.Errorf("%v allocations a line", n)
	}
}
