package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/supervisor/journal"
)

// §6.14: the supervisor is killed at every write of its journal during a
// rotation, before it and after it; each time its successor ends up at the same
// place: the worker has turned once, and the door goes on.
func TestKilledAtEveryJournalStep(t *testing.T) {
	b := newBench(t, 1, nil)
	b.spawn()
	b.waitReady()
	generation := b.workers()[0].Generation
	deaths := 0
	for step := 1; ; step++ {
		b.env = []string{"FAKE_DIE_AT=" + strconv.Itoa(step)}
		b.kill()
		b.spawn()
		b.until("the supervisor answers", func() bool { w := b.workers(); return len(w) == 1 && w[0].State == "ready" })
		// The answer to this may be the death itself.
		res, err := client.Post(b.api+"/api/pools/chat/rotate", "application/json", nil)
		if err == nil {
			res.Body.Close()
		}
		lived := false
		b.until("it dies or the rotation is done", func() bool {
			select {
			case <-b.dead:
				return true
			default:
			}
			state, _ := b.rotation()
			w := b.workers()
			lived = state == "done" && len(w) == 1 && w[0].Generation == generation+1
			return lived
		})
		b.env = nil
		if lived {
			b.kill()
			b.spawn()
			break
		}
		deaths++
		<-b.dead
		b.spawn()
		b.until("the successor answers", func() bool { w := b.workers(); return len(w) == 1 && w[0].State == "ready" })
		if state, _ := b.rotation(); state != "running" && b.workers()[0].Generation == generation {
			// It died before a word of the rotation was written.
			if status, text := b.post("/api/pools/chat/rotate", ""); status != http.StatusOK {
				t.Fatal(status, text)
			}
		}
		b.until("the rotation is done", func() bool { state, _ := b.rotation(); return state == "done" })
		b.until("it serves", func() bool { return b.count(3) == nil })
		if w := b.workers()[0]; w.Generation != generation+1 {
			t.Fatalf("killed at write %d: generation %d became %d; want one turn", step, generation, w.Generation)
		}
		generation++
		if n := len(b.pids()); n != 2 {
			t.Fatalf("killed at write %d: %d processes; want a door and a worker", step, n)
		}
	}
	if deaths < 8 {
		t.Errorf("only %d deaths: the hook is not where the journal is written", deaths)
	}
	t.Logf("%d deaths", deaths)
	b.kill()
	b.run() // to end all in order
}

// §6.22: on a disk that is full no rotation begins, and service goes on; with room
// again it begins by itself, and what was decided meanwhile is on the disk.
func TestDiskFull(t *testing.T) {
	b := newBench(t, 2, map[string]string{"FAKE_PACE": "5ms"})
	if err := os.MkdirAll(b.cfg.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	full, room := fullDisk(t, b)
	b.run()
	stop := b.load(2)
	full(b.s.memory.journal)
	// An operator's word is taken, and cannot be written.
	if status, text := b.post("/api/workers/chat/1/drain", ""); status != http.StatusOK {
		t.Fatal(status, text)
	}
	b.until("it is drained", func() bool { return b.workers()[0].State == "drained" })
	if status, text := b.post("/api/workers/chat/1/undrain", ""); status != http.StatusOK {
		t.Fatal(status, text)
	}
	b.until("it is back", func() bool { return b.workers()[0].State == "ready" })
	b.until("the supervisor has seen it", func() (seen bool) {
		_ = b.s.ask(t.Context(), func() { seen = b.s.memory.disk.full || b.s.memory.failed != nil })
		return seen
	})
	before := b.workers()
	if status, text := b.post("/api/pools/chat/rotate", ""); status != http.StatusOK {
		t.Fatal(status, text)
	}
	b.until("the rotation waits", func() bool {
		_, why := b.rotationWaits()
		return strings.Contains(why, "journal cannot be written")
	})
	if after := b.workers(); !slices.Equal(before, after) {
		t.Errorf("%+v became %+v", before, after)
	}
	room()
	b.until("the rotation is done", func() bool { state, _ := b.rotation(); return state == "done" })
	stop()
}

// fullDisk puts the state folder on a small disk of its own, which full fills up
// and room empties. Without the right to mount one, the journal's writes fail
// instead as they would there.
func fullDisk(t *testing.T, b *bench) (full func(*journal.Journal), room func()) {
	t.Helper()
	filler := filepath.Join(b.cfg.StateDir, "filler")
	if err := unix.Mount("tmpfs", b.cfg.StateDir, "tmpfs", 0, "size=4m"); err != nil {
		t.Logf("no small disk: %v", err)
		var failing bool
		return func(j *journal.Journal) {
				_ = b.s.ask(t.Context(), func() {
					failing = true
					j.Fault = func(bool) error {
						if failing {
							return unix.ENOSPC
						}
						return nil
					}
				})
			}, func() {
				_ = b.s.ask(t.Context(), func() { failing = false })
			}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(b.cfg.StateDir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return func(*journal.Journal) {
			f, err := os.Create(filler)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := io.Copy(f, zeros{}); !errors.Is(err, unix.ENOSPC) {
				t.Fatalf("filling the disk: %v", err)
			}
		}, func() {
			if err := os.Remove(filler); err != nil {
				t.Error(err)
			}
		}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// runWith is run with other options.
func (b *bench) runWith(change func(*Options)) {
	b.t.Helper()
	b.write()
	cfg, err := readConfig(b.path)
	if err != nil {
		b.t.Fatal(err)
	}
	options := optionsFor(cfg, b.path, slog.New(slog.NewTextHandler(b.t.Output(), nil)))
	change(&options)
	if b.s, err = New(options); err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.s.Run(ctx) }()
	b.t.Cleanup(func() {
		if err := b.s.Shutdown(ctx, false); err != nil {
			b.t.Errorf("shutdown: %v", err)
		}
		cancel()
		if err := <-ended; err != nil {
			b.t.Errorf("run: %v", err)
		}
	})
	b.waitReady()
}

// §6.2: a worker that is stopped for a moment goes on with its answers; one that
// stays stopped answers nothing, counts as dead, and is replaced.
func TestStoppedWorker(t *testing.T) {
	b := newBench(t, 2, map[string]string{"FAKE_PACE": "5ms"})
	limits := func(o *Options, limit time.Duration) { o.DownAfter, o.HungAfter = limit, 2*limit }
	b.runWith(func(o *Options) { limits(o, 2*time.Minute) })
	stop := b.load(4)
	victim := b.workers()[0]
	signal := func(s syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(victim.Place.PID, s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	<-time.After(300 * time.Millisecond) // how long it is stopped is what is tested
	signal(syscall.SIGCONT)
	stop()
	if w := b.workers()[0]; w != victim {
		t.Errorf("stopped for a moment, %+v became %+v", victim, w)
	}
	signal(syscall.SIGSTOP)
	if err := b.s.ask(t.Context(), func() { limits(&b.s.options, 2*time.Second) }); err != nil {
		t.Fatal(err)
	}
	b.until("it is replaced", func() bool {
		w := b.workers()[0]
		return w.State == "ready" && w.Generation > victim.Generation
	})
	if last := b.workers()[0].LastError; last != "" {
		t.Logf("last error %q", last)
	}
}

// §6.3: a worker whose health is good while its requests stand still is hung, and
// is restarted; what is said of it has the reason.
func TestHungWorkerIsRestarted(t *testing.T) {
	b := newBench(t, 2, map[string]string{"FAKE_PACE": "1h", "FAKE_HANGS": "yes"})
	b.runWith(func(o *Options) { o.DownAfter, o.HungAfter = time.Minute, time.Second })
	before := b.workers()
	done := make(chan struct{})
	go func() {
		defer close(done)
		res, err := client.Post(b.door+"/v1/completions", "application/json", strings.NewReader(`{"stream":true,"max_tokens":5}`))
		if err == nil {
			_, _ = io.Copy(io.Discard, res.Body) // its end is the hung worker's
			res.Body.Close()
		}
	}()
	b.until("one is restarted", func() bool {
		for i, w := range b.workers() {
			if w.State == "ready" && w.Generation > before[i].Generation {
				return true
			}
		}
		return false
	})
	<-done
	if text := b.events("abandoned"); !strings.Contains(text, "makes no progress") {
		t.Errorf("events: %s", text)
	}
}

// events returns the texts of a kind of event.
func (b *bench) events(kind string) string {
	b.t.Helper()
	res, err := client.Get(b.api + "/api/events?follow=false")
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	out := ""
	for _, part := range strings.Split(string(text), "\n\n") {
		if strings.Contains(part, "event: "+kind+"\n") {
			out += part + "\n"
		}
	}
	return out
}

// §6.12: a worker that is healthy and serves another model takes no request.
func TestHealthyButWrongModel(t *testing.T) {
	b := newBench(t, 2, map[string]string{"FAKE_PACE": "5ms"})
	b.run()
	stop := b.load(2)
	b.cfg.Pools[0].Engine.Environment = map[string]string{"FAKE_MODEL": "another"}
	b.write()
	if status, text := b.post("/api/reload", ""); status != http.StatusOK {
		t.Fatal(status, text)
	}
	b.until("the rotation is rolled back", func() bool { state, _ := b.rotation(); return state == "rolled_back" })
	if _, reason := b.rotation(); !strings.Contains(reason, `not "fake"`) {
		t.Errorf("reason %q", reason)
	}
	b.waitReady()
	stop()
}

// §6.11: a new configuration that becomes ready and ends soon after is rolled back
// before a second worker gets it.
func TestReadyAndThenCrashing(t *testing.T) {
	b := newBench(t, 2, nil)
	b.runWith(func(o *Options) { o.Proven = time.Hour })
	b.cfg.Pools[0].Engine.Environment = map[string]string{"NEW": "1"}
	b.write()
	if status, text := b.post("/api/reload", ""); status != http.StatusOK {
		t.Fatal(status, text)
	}
	b.until("the first is ready with it", func() bool { w := b.workers()[0]; return w.State == "ready" && w.Generation == 2 })
	if err := syscall.Kill(b.workers()[0].Place.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.until("the rotation is rolled back", func() bool { state, _ := b.rotation(); return state == "rolled_back" })
	b.waitReady()
	w := b.workers()
	if w[0].Generation != 3 || w[1].Generation != 1 {
		t.Errorf("%+v; want the first back in generation 3, and the second untouched", w)
	}
}

// §6.20: a hundred reloads at once, good and bad: each applies whole or not at
// all, the last good one holds, and no request is lost.
func TestReloadStorm(t *testing.T) {
	b := newBench(t, 2, map[string]string{"FAKE_PACE": "5ms"})
	b.run()
	stop := b.load(2)
	good, err := os.ReadFile(b.path)
	if err != nil {
		t.Fatal(err)
	}
	before := b.workers()
	for i := range 40 {
		text := string(good)
		if i%2 == 0 {
			text = strings.Replace(text, `"parallel":1`, fmt.Sprintf(`"parallel":%d`, 1+i), 1)
		} else {
			text = text[:len(text)/2]
		}
		if err := os.WriteFile(b.path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		want := http.StatusOK
		if i%2 == 1 {
			want = http.StatusBadRequest
		}
		if status, text := b.post("/api/reload", ""); status != want {
			t.Fatalf("reload %d: %d %s", i, status, text)
		}
	}
	stop()
	res, err := client.Get(b.api + "/api/config")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); !strings.Contains(string(text), `"parallel":39`) {
		t.Errorf("the last good one is not in force: %s", text)
	}
	if after := b.workers(); !slices.Equal(before, after) {
		t.Errorf("%+v became %+v", before, after)
	}
}
