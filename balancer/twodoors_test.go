package balancer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"roundhouse/balancer"
	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// doorProcess is what the test's own program is told to be a door by.
const doorProcess = "ROUNDHOUSE_TEST_DOOR"

// runDoor is the life of a test program that is a door.
func runDoor(id string) error {
	dir := os.Getenv("ROUNDHOUSE_TEST_DIR")
	l, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	d, err := balancer.New(balancer.Options{ID: id, Listener: l, Socket: filepath.Join(dir, id+".sock"), StateDir: dir, DrainTimeout: time.Minute,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Access: os.Stderr})
	if err != nil {
		return err
	}
	d.MoveWithin(time.Minute) // the next door is there, however slow the machine is
	return d.Run(context.Background(), context.Background())
}

// brief keeps no connection, so that no door waits for its next request.
var brief = &http.Transport{DisableKeepAlives: true}

// doors is several door processes on one listener, and what a supervisor does
// for them.
type doors struct {
	t        *testing.T
	dir      string
	url      string
	listener *os.File
	running  map[string]*exec.Cmd
}

func newDoors(t *testing.T) *doors {
	// A socket's path is short, and a test's own folder is not.
	dir, err := os.MkdirTemp("", "doors")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	ds := &doors{t: t, dir: dir, url: "http://" + l.Addr().String(), listener: f, running: map[string]*exec.Cmd{}}
	t.Cleanup(func() {
		f.Close()
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
			for _, log := range logs {
				text, _ := os.ReadFile(log)
				t.Logf("%s:\n%s", filepath.Base(log), text)
			}
		}
		for _, c := range ds.running {
			c.Process.Signal(syscall.SIGKILL)
			c.Wait()
		}
		os.RemoveAll(dir)
	})
	return ds
}

func (ds *doors) start(id string) {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), doorProcess+"="+id, "ROUNDHOUSE_TEST_DIR="+ds.dir)
	c.ExtraFiles = []*os.File{ds.listener}
	log, err := os.Create(filepath.Join(ds.dir, id+".log"))
	if err != nil {
		ds.t.Fatal(err)
	}
	defer log.Close()
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		ds.t.Fatal(err)
	}
	ds.running[id] = c
	(&rig{t: ds.t}).until(id+" answers", func() bool {
		var s control.State
		return ds.ask(id, "GET", "/state", nil, &s) == nil
	})
}

// ask asks one door over its private socket.
func (ds *doors) ask(id, method, path string, body, into any) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", filepath.Join(ds.dir, id+".sock"))
	}}}
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(method, "http://door"+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		b, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, b)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

func (ds *doors) must(id, method, path string, body, into any) {
	ds.t.Helper()
	if err := ds.ask(id, method, path, body, into); err != nil {
		ds.t.Fatal(err)
	}
}

func (ds *doors) state(id string) (s control.State) {
	ds.must(id, "GET", "/state", nil, &s)
	return s
}

func (ds *doors) reach(id string) {
	(&rig{t: ds.t}).until(id+" has reached its workers", func() bool {
		s := ds.state(id)
		for _, w := range s.Workers {
			if !w.Reached {
				return false
			}
		}
		return len(s.Workers) > 0
	})
}

// leave has a door take its leave, and waits until its process has ended.
func (ds *doors) leave(id string) {
	ds.must(id, "POST", "/shutdown", nil, nil)
	if err := ds.running[id].Wait(); err != nil {
		ds.t.Errorf("%s: %v", id, err)
	}
	delete(ds.running, id)
}

func (ds *doors) post(client http.RoundTripper, key, body string) (*http.Response, string, error) {
	req, err := http.NewRequest("POST", ds.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := client.RoundTrip(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, string(b), err
}

func setOf(keys []configs.Key, workers ...*sim.Worker) control.WorkerSet {
	s := control.WorkerSet{Schema: 1, Holder: "test", Epoch: 1, Version: 1, Pools: []control.Pool{{Name: "p", Models: []string{"sim"}}}}
	s.Door.Keys, s.Door.Resume.Enabled = keys, true
	for i, w := range workers {
		s.Pools[0].Workers = append(s.Pools[0].Workers, control.Worker{Name: fmt.Sprint(i + 1), URL: w.URL, Kind: "roundhouse", State: "ready", Generation: 1})
	}
	return s
}

func startWorkers(t *testing.T, workers ...*sim.Worker) {
	for _, w := range workers {
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
	}
}

// TestTwoDoorProcesses replaces a door by another process thrice, under load:
// no request is refused or cut, no key gets more than its limit, and the drain
// of a worker is not over before its last stream is, whichever door has it.
func TestTwoDoorProcesses(t *testing.T) {
	a, b := sim.New(sim.Options{Own: true, Words: 10, Pace: time.Millisecond}), sim.New(sim.Options{Own: true, Words: 10, Pace: time.Millisecond})
	startWorkers(t, a, b)
	set := setOf([]configs.Key{
		{Name: "load", SHA256: []string{hashOf("load")}, Models: []string{"*"}},
		{Name: "few", SHA256: []string{hashOf("few")}, Models: []string{"*"}, RequestsPerMinute: 20},
		{Name: "one", SHA256: []string{hashOf("one")}, Models: []string{"*"}, MaxConcurrent: 1},
	}, a, b)
	ds := newDoors(t)
	ds.start("door-1")
	ds.must("door-1", "PUT", "/worker-set", set, nil)
	ds.reach("door-1")

	var over atomic.Bool
	var served atomic.Int64
	var clients sync.WaitGroup
	for i := range 12 {
		clients.Go(func() {
			client := &http.Transport{}
			defer client.CloseIdleConnections()
			for !over.Load() {
				resp, got, err := ds.post(client, "load", fmt.Sprintf(chatBody, i%2 == 0, ""))
				if err != nil || resp.StatusCode != 200 || !strings.Contains(got, "9 ") {
					t.Errorf("a request failed: %v %v %s", err, resp, got)
					return
				}
				served.Add(1)
			}
		})
	}
	defer func() { over.Store(true); clients.Wait() }()
	few := 0
	spend := func() {
		for range 8 {
			if resp, _, err := ds.post(brief, "few", okBody); err == nil && resp.StatusCode == 200 {
				few++
			}
		}
	}
	began := time.Now()
	for i := range 3 {
		old, next := fmt.Sprint("door-", i+1), fmt.Sprint("door-", i+2)
		target := served.Load() + 60
		(&rig{t: t}).until("sixty more are served", func() bool { return served.Load() > target || t.Failed() })
		spend()
		ds.start(next)
		ds.must(next, "PUT", "/worker-set", set, nil)
		ds.reach(next)
		spend()
		ds.leave(old)
	}
	spend()
	if most := 20 + int(time.Since(began).Minutes()*20) + 1; few > most || few < 20 {
		t.Errorf("a key of 20 requests a minute was served %d times over three changes of doors; want 20 to %d", few, most)
	}
	over.Store(true)
	clients.Wait()
	ds.drainUnderBoth(set, a, "door-4", "door-5")
}

// drainUnderBoth has a stream at each of two doors, and drains their worker.
func (ds *doors) drainUnderBoth(set control.WorkerSet, w *sim.Worker, old, next string) {
	t := ds.t
	w.Hang.Store(true)
	set.Version, set.Pools[0].Workers = 2, set.Pools[0].Workers[:1]
	ds.must(old, "PUT", "/worker-set", set, nil)
	before := w.Served.Load()
	stop, cancel := context.WithCancel(t.Context())
	defer cancel()
	var streams sync.WaitGroup
	hold := func() {
		req, err := http.NewRequestWithContext(stop, "POST", ds.url+"/v1/chat/completions", strings.NewReader(fmt.Sprintf(chatBody, true, "")))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer one")
		streams.Go(func() {
			if resp, err := brief.RoundTrip(req); err == nil {
				resp.Body.Close()
			}
		})
	}
	hold()
	(&rig{t: t}).until("the worker has the stream", func() bool { return w.Served.Load() == before+1 })
	ds.start(next)
	ds.must(next, "PUT", "/worker-set", set, nil)
	ds.reach(next)
	sum := func() (n int) {
		for id := range ds.running {
			for _, s := range ds.state(id).Workers {
				n += s.Requests.InFlight
			}
		}
		return n
	}
	if n := sum(); n != 1 {
		t.Errorf("%d requests are in flight at both doors; want 1", n)
	}
	ds.must(old, "POST", "/shutdown", nil, nil) // it stays for its stream
	(&rig{t: t}).until("the old door drains", func() bool { return ds.state(old).Phase == "draining" })
	set.Version, set.Pools[0].Workers[0].State = 3, "draining"
	for id := range ds.running {
		ds.must(id, "PUT", "/worker-set", set, nil)
	}
	if s := ds.state(next).Workers[0]; s.State != "drained" || s.Requests.InFlight != 0 {
		t.Errorf("the new door has nothing there, and says %s with %d", s.State, s.Requests.InFlight)
	}
	if n := sum(); n != 1 {
		t.Errorf("the drain is over with %d requests in flight at the old door", n)
	}
	if resp, got, err := ds.post(brief, "one", okBody); err != nil || resp.StatusCode != 429 {
		t.Errorf("a key's one concurrent request runs at the old door; another one got %v %v %s", err, resp, got)
	}
	cancel()
	streams.Wait()
	if err := ds.running[old].Wait(); err != nil {
		t.Errorf("%s: %v", old, err)
	}
	delete(ds.running, old)
	(&rig{t: t}).until("the drain is over", func() bool { return sum() == 0 })
}
