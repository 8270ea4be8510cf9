package test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// onlyWorker is a pool of one, which turns by gap.
var onlyWorker = strings.Replace(twoWorkers, "workers = 2", "workers = 1", 1)

// §6.13: a pool of one takes its turn under load. Nobody else could serve
// meanwhile: requests wait, streams go on at the successor, none is lost.
func TestGapLosesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, fmt.Sprintf(onlyWorker, `"--pace", "5ms"`))
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	var answers tally
	answers.keep(ctx, t, s, 8)
	before := s.known()[0]
	rotate := exec.CommandContext(ctx, built.Path(t, "roundhouse"), "rotate", "chat", "--admin", s.Admin)
	if out, err := rotate.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	since := answers.whole.Load()
	poll(t, "answers after it", func() bool { return answers.whole.Load() > since+8 }, s.out.String)
	answers.stop(t)
	if w := s.workers()[0]; w.Generation != before.Generation+1 {
		t.Errorf("%+v became %+v", before, w)
	}
}

// §6.4: a worker that is told to end by somebody else finishes its streams, or
// they go on at another one; it is started again.
func TestTerminatedWorkerLosesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, fmt.Sprintf(twoWorkers, `"--pace", "5ms"`))
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	var answers tally
	answers.keep(ctx, t, s, 8)
	poll(t, "answers under way", func() bool { return answers.whole.Load() > 8 }, s.out.String)
	target := s.known()[0]
	if err := syscall.Kill(target.Place.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	poll(t, "it is back", func() bool {
		w := s.workers()
		return len(w) == 2 && w[0].State == "ready" && w[0].Generation > target.Generation
	}, s.out.String)
	answers.stop(t)
}

// §6.23: a door that may open few files turns clients away while it has none left,
// and serves as before once there are some; nothing falls.
func TestFewFiles(t *testing.T) {
	t.Parallel()
	path, door, admin := writeConfig(t, fmt.Sprintf(twoWorkers, ""))
	s := &system{t: t, out: newOutput(), Door: "http://" + door, Admin: "http://" + admin}
	s.cmd = exec.Command("sh", "-c", `ulimit -n 160 && exec "$0" up -c "$1"`, built.Path(t, "roundhouse"), path)
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	s.waitReady()
	pids := s.known()
	var held []net.Conn
	for range 400 {
		c, err := net.DialTimeout("tcp", door, time.Second)
		if err != nil {
			break // the kernel's queue is full as well
		}
		held = append(held, c)
	}
	if len(held) < 160 {
		t.Errorf("only %d connections", len(held))
	}
	// One that comes now waits, or is turned away with a word or without; it must
	// not be answered wrongly.
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	if res, err := client.Get(s.Door + "/health"); err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("status %d", res.StatusCode)
		}
	}
	for _, c := range held {
		c.Close()
	}
	poll(t, "it serves again", func() bool { return count(t.Context(), s.Door, 1, 20) == nil }, s.out.String)
	for i, w := range s.known() {
		if w.Place.PID != pids[i].Place.PID {
			t.Errorf("%s fell: %+v", w.ID, w)
		}
	}
}

// A pool of one that surges is never empty: a second worker is ready before the
// first is taken out, and gone when the rotation is over.
func TestSurgeIsNeverEmpty(t *testing.T) {
	t.Parallel()
	pool := strings.Replace(onlyWorker, "rotation {", "rotation {\n    strategy      = \"surge\"\n    min_ready     = 1", 1)
	s := start(t, fmt.Sprintf(pool, `"--pace", "5ms"`))
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	var answers tally
	answers.keep(ctx, t, s, 8)
	before := s.known()[0]
	if status, text := post(t, s.Admin+"/api/pools/chat/rotate", ""); status != http.StatusOK {
		t.Fatal(status, text)
	}
	relieved := false
	poll(t, "the rotation is done, and its relief gone", func() bool {
		list, ready := s.workers(), 0
		for _, w := range list {
			if w.State == "ready" {
				ready++
			}
			relieved = relieved || w.ID == "chat/relief"
		}
		if len(list) > 0 && ready == 0 {
			t.Errorf("nobody is ready: %+v", list)
		}
		_, state, _ := s.lastRotation()
		return state == "done" && len(list) == 1
	}, s.out.String)
	answers.stop(t)
	if w := s.workers()[0]; !relieved || w.Generation != before.Generation+1 {
		t.Errorf("a relief was there: %v; %+v became %+v", relieved, before, w)
	}
}
