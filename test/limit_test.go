package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// §6.23: the machine gives no new process to a rotation, since the program on its disk
// can no longer be started: nothing is drained, the rotation says why, every stream
// goes on; once it can be started, --continue takes the rotation up.
func TestNoTurnWithoutASuccessor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"roundhouse", "roundhouse-worker"} {
		if err := os.Link(built.Path(t, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	path, door, admin := writeConfig(t, fmt.Sprintf(twoWorkers, `"--pace", "5ms"`))
	s := &system{t: t, out: newOutput(), Door: "http://" + door, Admin: "http://" + admin}
	s.cmd = exec.Command(filepath.Join(dir, "roundhouse"), "up", "-c", path)
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	s.waitReady()
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	var answers tally
	answers.keep(ctx, t, s, 8)
	before := s.known()
	worker := filepath.Join(dir, "roundhouse-worker")
	swap := func(make func(path string) error) { // the file that runs is not touched
		t.Helper()
		if err := make(worker + ".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(worker+".new", worker); err != nil {
			t.Fatal(err)
		}
	}
	swap(func(path string) error { return os.WriteFile(path, []byte("\x7fELF, and no more"), 0o755) })
	rotate := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, built.Path(t, "roundhouse"), append([]string{"rotate", "chat", "--admin", s.Admin}, args...)...).CombinedOutput()
		return string(out), err
	}
	if out, err := rotate(); err == nil || !strings.Contains(out, "nothing was drained") || !strings.Contains(out, "exec format error") {
		t.Errorf("rotate: %v\n%s", err, out)
	}
	for i, w := range s.known() {
		if w != before[i] {
			t.Errorf("%+v became %+v", before[i], w)
		}
	}
	swap(func(path string) error { return os.Link(built.Path(t, "roundhouse-worker"), path) })
	if out, err := rotate("--continue"); err != nil {
		t.Errorf("rotate --continue: %v\n%s", err, out)
	}
	answers.stop(t)
}

// §6.26: all workers end at once under many streams. Nobody is left, so streams are
// parked and new requests wait; when the workers are back, everything goes on at them
// without a storm: a request is sent again at most once for each worker that fell, none
// of them falls again, and every answer is whole, but for requests that were at two
// deaths without a token between, which is for the second outage alone to bring about.
func TestHerdAfterOutage(t *testing.T) {
	t.Parallel()
	s := start(t, fmt.Sprintf(twoWorkers, `"--pace", "5ms", "--max-num-seqs", "16"`))
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	const streams, outages = 64, 2
	answers := tally{outages: true}
	answers.keep(ctx, t, s, streams)
	for outage := range outages {
		since := answers.whole.Load()
		poll(t, "answers under way", func() bool { return answers.whole.Load() > since+16 }, s.out.String)
		before := s.known()
		fellTogether(t, before)
		poll(t, "both are back", func() bool {
			list := s.workers()
			for i, w := range list {
				if w.State != "ready" || w.Place.PID == before[i].Place.PID {
					return false
				}
			}
			return len(list) == 2
		}, s.out.String)
		if n := answers.twice.Load(); outage == 0 && n > 0 {
			t.Errorf("%d requests of one outage were taken for killers of two workers", n)
		}
	}
	since, back := answers.whole.Load(), s.known()
	poll(t, "answers after it", func() bool { return answers.whole.Load() > since+64 }, s.out.String)
	for i, w := range s.known() {
		if w != back[i] {
			t.Errorf("the herd brought %+v to %+v", back[i], w)
		}
	}
	answers.stop(t)
	requests, retries := s.sum("roundhouse_requests_total"), s.sum("roundhouse_retries_total")
	if most := float64(streams * outages * len(back)); retries > most {
		t.Errorf("%v requests were sent again; %v is the most that can be", retries, most)
	}
	if n := answers.twice.Load(); n > streams*outages {
		t.Errorf("%d requests were at two deaths; %d is the most that can be", n, streams*outages)
	}
	t.Logf("%d answers over two outages, %d that were at two deaths, %v requests, %v sent again", answers.whole.Load(), answers.twice.Load(), requests, retries)
}

// fellTogether ends all workers as one outage does. They are stopped before the first
// is killed: between two kills the test may be kept waiting for a processor, and a worker
// that still ran would read what the first one left and then be its second death.
func fellTogether(t *testing.T, workers []worker) {
	t.Helper()
	for _, w := range workers {
		signal(t, w, syscall.SIGSTOP)
	}
	poll(t, "every worker stands still", func() bool {
		return !slices.ContainsFunc(workers, func(w worker) bool { return runs(w.Place.PID) })
	}, func() string { return fmt.Sprintf("%+v", workers) })
	for _, w := range workers {
		signal(t, w, syscall.SIGKILL)
	}
}

func signal(t *testing.T, w worker, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(w.Place.PID, sig); err != nil {
		t.Errorf("%v to process %d of %s: %v", sig, w.Place.PID, w.ID, err)
	}
}

// runs reports whether a thread of the process is not stopped yet.
func runs(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	return slices.ContainsFunc(threads, func(path string) bool {
		stat, err := os.ReadFile(path)
		state := stat[bytes.LastIndexByte(stat, ')')+1:]
		return err == nil && !bytes.HasPrefix(state, []byte(" T"))
	})
}

// sum adds up a metric of the door over all its labels.
func (s *system) sum(name string) (total float64) {
	s.t.Helper()
	res, err := http.Get(s.Door + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		labels, value, ok := strings.Cut(strings.TrimSpace(string(line)), " ")
		if at, _, _ := strings.Cut(labels, "{"); !ok || at != name {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		total += n
	}
	return total
}

// §6.27: plugins end and stand still while a rotation runs. A filter whose on_failure
// is "open" is passed by, again and again; a notifier that stands still is not waited
// for; the rotation goes on, and every answer is whole. What "closed" does then is
// TestFilterHangs'.
func TestPluginsFailInRotation(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "roundhouse-plugins-") // the door's own user reads it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "webhook.json"), []byte(`{"url":"http://127.0.0.1:9/","secret":"s"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	open := strings.Replace(plugin(t, dir, "redactor", "filter"), "}\n", "  on_failure = \"open\"\n}\n", 1)
	s := start(t, open+plugin(t, dir, "webhook", "notifier")+fmt.Sprintf(twoWorkers, `"--pace", "5ms"`))
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	var answers tally
	answers.keep(ctx, t, s, 8)
	before := s.known()
	done := make(chan error, 1)
	go func() {
		out, err := exec.CommandContext(ctx, built.Path(t, "roundhouse"), "rotate", "chat", "--admin", s.Admin).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		done <- err
	}()
	killed, held := 0, map[int]bool{}
	for ended := false; !ended; {
		for name, pid := range s.plugins() {
			switch {
			case name == "redactor":
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended since
				killed++
			case !held[pid]:
				held[pid] = syscall.Kill(pid, syscall.SIGSTOP) == nil
			}
		}
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			ended = true
		case <-time.After(200 * time.Millisecond):
		}
	}
	answers.stop(t)
	for i, w := range s.known() {
		if w.Generation != before[i].Generation+1 || w.State != "ready" {
			t.Errorf("%+v became %+v", before[i], w)
		}
	}
	for pid := range held {
		_ = syscall.Kill(pid, syscall.SIGCONT) // it may have been replaced
	}
	if killed == 0 || len(held) == 0 {
		t.Errorf("the filter was ended %d times, and %d notifiers were held", killed, len(held))
	}
	t.Logf("%d answers, a filter ended %d times, a notifier held %d times", answers.whole.Load(), killed, len(held))
}

// plugins are the processes of the plugins that run, by name.
func (s *system) plugins() map[string]int {
	var list struct {
		Plugins []struct {
			Name, State string
			PID         int
		}
	}
	out := map[string]int{}
	res, err := http.Get(s.Admin + "/api/plugins")
	if err != nil {
		return out
	}
	defer res.Body.Close()
	if json.NewDecoder(res.Body).Decode(&list) != nil {
		return out
	}
	for _, p := range list.Plugins {
		if p.State == "running" && p.PID > 0 {
			out[p.Name] = p.PID
		}
	}
	return out
}
