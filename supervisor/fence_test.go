package supervisor

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// given runs a door of somebody else's, with leases of the given length, and
// returns its private socket.
func given(t *testing.T, lease time.Duration) (d *fakeDoor, socket string) {
	t.Helper()
	d = newFakeDoor("given")
	d.lease = lease
	socket = filepath.Join(t.TempDir(), "door.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: d.control(func() {})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	ctx, cancel := context.WithCancel(context.Background())
	reached := make(chan struct{})
	go func() {
		defer close(reached)
		d.reach(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		server.Close()
		<-done
		<-reached
	})
	return d, socket
}

// over starts a supervisor over given doors.
func (b *bench) over(ctx context.Context, wait time.Duration, sockets ...string) chan error {
	b.t.Helper()
	b.write()
	cfg, err := readConfig(b.path)
	if err != nil {
		b.t.Fatal(err)
	}
	options := optionsFor(cfg, b.path, slog.New(slog.NewTextHandler(b.t.Output(), nil)))
	options.Doors, options.LeaseWait, options.DoorAfter = sockets, wait, time.Second
	if b.s, err = New(options); err != nil {
		b.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- b.s.Run(ctx) }()
	return ended
}

// §6.15, over doors that others run: the second supervisor is kept out by the
// lease of the first, starts nothing, and ends.
func TestSecondSupervisorStartsNothing(t *testing.T) {
	_, socket := given(t, time.Minute) // longer than any pause between two renewals
	first := newBench(t, 1, nil)
	ctx, cancel := context.WithCancel(context.Background())
	ended := first.over(ctx, time.Minute, socket)
	first.until("the first one's worker is ready", func() bool {
		w := first.workers()
		return len(w) == 1 && w[0].State == "ready"
	})
	second := anotherBench(t, 1, nil)
	if err := <-second.over(t.Context(), 3*time.Second, socket); !errors.Is(err, errTurnedAway) {
		t.Errorf("the second one ended with %v", err)
	}
	if pids := second.pids(); len(pids) > 0 {
		t.Errorf("it left %v running", pids)
	}
	if w := first.workers(); len(w) != 1 || w[0].State != "ready" {
		t.Errorf("the first one's: %+v", w)
	}
	if err := first.s.Shutdown(ctx, false); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// §6.16 and §6.15: one that is cut off from its door stops nothing; the one that
// takes over, once the lease has ended, is obeyed; and when the first is heard
// again, it ends and leaves its workers running.
func TestCutOffSupervisorIsFenced(t *testing.T) {
	d, socket := given(t, time.Second)
	first := newBench(t, 2, nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := first.over(ctx, time.Minute, socket)
	first.until("the first one's workers are ready", func() bool {
		w := first.workers()
		return len(w) == 2 && w[0].State == "ready" && w[1].State == "ready"
	})
	before := first.pids()
	d.mu.Lock() // the door hears nobody
	if status, text := first.post("/api/pools/chat/rotate", ""); status != http.StatusOK {
		t.Fatal(status, text)
	}
	first.until("the lease has ended", func() bool { return time.Now().After(d.until.Add(100 * time.Millisecond)) })
	first.until("it waits for the doors", func() bool {
		for _, w := range first.workers() {
			if w.State == "draining" {
				return true // begun while the lease still ran; it is never stopped without the door's word
			}
		}
		_, why := first.rotationWaits()
		return strings.Contains(why, "do not obey")
	})
	if after := first.pids(); len(after) != 2 || after[0] != before[0] || after[1] != before[1] {
		t.Errorf("cut off, it stopped something: %v became %v", before, after)
	}
	// The lease has ended, and somebody else is heard first.
	d.set.Holder, d.set.Epoch, d.until = "another", d.set.Epoch+1, time.Now().Add(time.Hour)
	d.mu.Unlock()
	if err := <-ended; !errors.Is(err, errFenced) {
		t.Errorf("it ended with %v", err)
	}
	if after := first.pids(); len(after) != 2 || after[0] != before[0] || after[1] != before[1] {
		t.Errorf("fenced, it stopped something: %v became %v", before, after)
	}
	first.clear()
}

// A door that is not there holds nobody up: workers become ready by the other one, and
// turn. Once it is there it is obeyed again.
func TestAbsentDoorHoldsNobody(t *testing.T) {
	d, socket := given(t, time.Minute)
	b := newBench(t, 2, nil)
	ctx, cancel := context.WithCancel(context.Background())
	ended := b.over(ctx, time.Minute, socket, filepath.Join(t.TempDir(), "none.sock"))
	b.until("the workers are ready", func() bool {
		w := b.workers()
		return len(w) == 2 && w[0].State == "ready" && w[1].State == "ready"
	})
	if status, text := b.post("/api/pools/chat/rotate", ""); status != http.StatusOK {
		t.Fatal(status, text)
	}
	b.until("both have turned", func() bool {
		w := b.workers()
		state, _ := b.rotationWaits()
		return state == "done" && w[0].Generation == 2 && w[1].Generation == 2
	})
	if text := b.events("door"); !strings.Contains(text, "given-2") || !strings.Contains(text, "nothing waits for it") {
		t.Errorf("events: %s", text)
	}
	d.mu.Lock()
	told := len(d.set.Pools)
	d.mu.Unlock()
	if told != 1 {
		t.Errorf("the door that is there was told %d pools", told)
	}
	if err := b.s.Shutdown(ctx, false); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A door is absent once its questions have failed for long, however long ago it was
// heard; as long as no door answers, every one is waited for.
func TestDoorsThatAreAbsent(t *testing.T) {
	began := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	a, c, ours := &door{id: "a"}, &door{id: "c"}, &door{id: "ours", child: true}
	notes := events{log: slog.New(slog.DiscardHandler)}
	f := func(g gate, after time.Duration, want string) {
		t.Helper()
		g.tend(began.Add(after), 45*time.Second, &notes)
		var ids []string
		for _, d := range g.living() {
			ids = append(ids, d.id)
		}
		slices.Sort(ids)
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("after %v: %s; want %s", after, got, want)
		}
	}
	two := gate{doors: map[string]*door{"a": a, "c": c}}
	f(two, 0, "a c")
	c.silent = began
	f(two, 45*time.Second, "a c")
	f(two, 46*time.Second, "a")
	a.silent = began.Add(time.Minute)
	f(two, 106*time.Second, "a c") // nobody answers
	a.silent = time.Time{}
	f(two, 106*time.Second, "a")
	c.silent = time.Time{}
	f(two, 107*time.Second, "a c")
	ours.silent = began
	f(gate{doors: map[string]*door{"a": a, "ours": ours}}, time.Hour, "a ours") // its process is there
}
