package balancer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"roundhouse/balancer"
	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// TestAdmin asks a door's own admin API what an operator asks.
func TestAdmin(t *testing.T) {
	w := sim.New(sim.Options{Own: true})
	w.Hang.Store(true)
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) { s.Epoch = 0 })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("line 3: what is that?")
	r.door.ServeAdmin(l, balancer.Admin{
		Config: configs.Admin{Listen: l.Addr().String(), Token: "right"},
		Shown:  func() any { return map[string]string{"shown": "yes"} },
		Reload: func() ([]string, error) { return []string{"door.queue"}, broken },
	})
	ask := func(method, path string, header ...string) (int, string) {
		req, err := http.NewRequest(method, "http://"+l.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer right")
		for i := 0; i+1 < len(header); i += 2 {
			if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
				req.Host = header[i+1]
			}
		}
		resp, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	f := func(name string, want int, holds, method, path string, header ...string) {
		t.Helper()
		if got, body := ask(method, path, header...); got != want || !strings.Contains(body, holds) {
			t.Errorf("%s: got %d %s; want %d with %s", name, got, body, want, holds)
		}
	}
	f("without the token", 401, "token", "GET", "/api/workers", "Authorization", "")
	f("with a wrong one", 401, "token", "GET", "/api/workers", "Authorization", "Bearer wrong")
	f("by another name", 403, "Host", "GET", "/api/workers", "Host", "evil.example")
	f("from another page", 403, "origin", "GET", "/api/workers", "Origin", "http://evil.example")
	f("workers", 200, `"workers":[{"id":"p/1","pool":"p","name":"1","driver":"static","state":"ready","reason":null`, "GET", "/api/workers")
	f("pools", 200, `"ready":1`, "GET", "/api/pools")
	f("version", 200, `"schema":1`, "GET", "/api/version")
	f("configuration", 200, `"shown":"yes"`, "GET", "/api/config")
	f("metrics", 200, "roundhouse_worker_state", "GET", "/metrics")
	f("a reload that fails", 400, "line 3", "POST", "/api/reload")
	broken = nil
	f("a reload", 200, "door.queue", "POST", "/api/reload")
	f("the file, of which there is none", 409, "no file", "GET", "/api/config/changes")
	f("what needs a supervisor", 404, "supervisor", "POST", "/api/workers/p/1/stop")
	f("what needs a supervisor", 404, "supervisor", "GET", "/api/rotations")
	f("a worker that is not there", 404, "p/9", "POST", "/api/workers/p/9/drain")
	done := make(chan int, 1)
	go func() {
		resp, _ := r.post("/v1/chat/completions", okBody, "x-request-id", "mine")
		done <- resp.StatusCode
	}()
	r.until("the worker has it", func() bool { return w.Live.Load() == 1 })
	f("in flight", 200, `"id":"mine"`, "GET", "/api/requests")
	f("the queue", 200, `[]`, "GET", "/api/queue")
	f("its decision", 200, `"chosen":"p/1"`, "GET", "/api/decisions/mine")
	f("draining", 200, `"worker":{"id":"p/1"`, "POST", "/api/workers/p/1/drain")
	f("it shows", 200, `"state":"draining","reason":"operator"`, "GET", "/api/workers")
	f("back again", 200, `"worker":{"id":"p/1"`, "POST", "/api/workers/p/1/undrain")
	f("a request that is not there", 404, "", "DELETE", "/api/requests/other")
	f("cancel", 204, "", "DELETE", "/api/requests/mine")
	if got := <-done; got != 499 {
		t.Errorf("the request that was cancelled got %d", got)
	}
}

// TestPeersByName lets doors that share no folder tell each other their totals
// over their admin APIs.
func TestPeersByName(t *testing.T) {
	w := sim.New(sim.Options{Own: true})
	startWorkers(t, w)
	w.Hang.Store(true)
	var admins, clients [2]net.Listener
	var peers []string
	for i := range admins {
		var err [2]error
		admins[i], err[0] = net.Listen("tcp", "127.0.0.1:0")
		clients[i], err[1] = net.Listen("tcp", "127.0.0.1:0")
		if err := errors.Join(err[:]...); err != nil {
			t.Fatal(err)
		}
		peers = append(peers, admins[i].Addr().String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	var doors [2]*balancer.Door
	for i := range doors {
		set := setOf(nil, w)
		set.Epoch, set.Door.Peers, set.PeerToken = 0, peers, control.PeerToken("shared") // itself among them
		d, err := balancer.New(balancer.Options{ID: fmt.Sprint("door-", i), Listener: clients[i], Set: &set, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			t.Fatal(err)
		}
		d.ServeAdmin(admins[i], balancer.Admin{Config: configs.Admin{Listen: admins[i].Addr().String(), Token: "shared"}})
		go func() { ended <- d.Run(ctx, ctx) }()
		doors[i] = d
	}
	r := &rig{t: t}
	r.until("both have reached the worker", func() bool {
		return doors[0].State().Workers[0].Reached && doors[1].State().Workers[0].Reached
	})
	go func() {
		resp, err := http.Post("http://"+clients[0].Addr().String()+"/v1/chat/completions", "application/json", strings.NewReader(okBody))
		if err == nil {
			resp.Body.Close()
		}
	}()
	r.until("the other door knows", func() bool { return doors[1].State().Workers[0].Requests.Elsewhere == 1 })
	if s := doors[0].State().Workers[0]; s.Requests.InFlight != 1 || s.Requests.Elsewhere != 0 {
		b, err := json.Marshal(s)
		t.Errorf("a door counts itself as another: %s %v", b, err)
	}
	cancel()
	for range doors {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestPeersOfTwoFleets: doors of two supervisors that name each other hold a key to one
// limit, and count none of the other's requests at workers of the same name.
func TestPeersOfTwoFleets(t *testing.T) {
	var ls [2]net.Listener
	var admins [2]string
	var doors [2]*balancer.Door
	for i := range ls {
		var err error
		if ls[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		admins[i] = ls[i].Addr().String()
	}
	rigs := [2]*rig{}
	defer func() { doorID = "door-1" }()
	for i := range doors {
		doorID = fmt.Sprint("door-", i)
		w := sim.New(sim.Options{Own: true})
		w.Hang.Store(true)
		rigs[i] = newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) {
			s.Epoch, s.Holder, s.Door.Peers, s.PeerToken = 0, fmt.Sprint("fleet", i), admins[:], control.PeerToken("shared")
			s.Door.Keys = []configs.Key{{Name: "team", SHA256: []string{hashOf("one")}, Models: []string{"*"}, MaxConcurrent: 1}}
		})
		doors[i] = rigs[i].door
		doors[i].ServeAdmin(ls[i], balancer.Admin{Config: configs.Admin{Listen: admins[i], Token: "shared"}})
	}
	rigs[1].until("they hear each other", func() bool { return doors[0].State().Peers == 1 && doors[1].State().Peers == 1 })
	ended := make(chan int)
	go func() {
		resp, _ := rigs[0].post("/v1/chat/completions", okBody, "Authorization", "Bearer one", "x-request-id", "first")
		ended <- resp.StatusCode
	}()
	rigs[0].until("the first door has the request", func() bool { return doors[0].State().Workers[0].Requests.InFlight == 1 })
	rigs[1].until("the other door turns the key away", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // until the door has heard, its worker takes the request, and hangs
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "POST", rigs[1].url+"/v1/chat/completions", strings.NewReader(okBody))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer one")
		resp, err := rigs[1].client.Do(req)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusTooManyRequests && doors[1].State().Workers[0].Requests.InFlight == 0
	})
	if s := doors[1].State().Workers[0].Requests; s.Elsewhere != 0 {
		t.Errorf("%d requests of another fleet are counted at a worker of the same name", s.Elsewhere)
	}
	doors[0].Cancel("first")
	if got := <-ended; got != 499 {
		t.Errorf("the request ended with %d", got)
	}
}

// TestPeerThatDoesNotListen: a door whose token another host does not take says so.
func TestPeerThatDoesNotListen(t *testing.T) {
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer there.Close()
	r := newRig(t, []*sim.Worker{sim.New(sim.Options{Own: true})}, func(s *control.WorkerSet) { s.Door.Peers = []string{there.Listener.Addr().String()} })
	r.until("it says that it is not listened to", func() bool {
		text := r.fault("peers")
		return strings.Contains(text, "401") && strings.Contains(text, r.set.Door.Peers[0])
	})
}

// TestInFlightResumes: who lists what is in flight sees how often a stream has gone on
// at another worker.
func TestInFlightResumes(t *testing.T) {
	die := new(atomic.Int64)
	die.Store(3)
	a, b := sim.New(sim.Options{Own: true, Words: 1 << 20, Pace: time.Millisecond}), sim.New(sim.Options{Own: true, Words: 1 << 20, Pace: time.Millisecond})
	a.DieOnce, b.DieOnce = die, die
	r := newRig(t, []*sim.Worker{a, b}, nil)
	resp, err := r.client.Post(r.url+"/v1/chat/completions", "application/json", strings.NewReader(fmt.Sprintf(chatBody, true, "")))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	go io.Copy(io.Discard, resp.Body)
	r.until("the stream is listed as resumed once", func() bool {
		all := r.door.Requests()
		return len(all) == 1 && all[0].Resumes == 1 && all[0].State == "streaming"
	})
}
