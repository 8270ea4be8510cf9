package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/supervisor/driver"
)

// answers is a server that is no further away than a function.
type answers func(*http.Request) (int, string, error)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) {
	status, text, err := f(r)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// §6.23: a supervisor that has no more files cannot ask, and holds no worker for
// unhealthy because of it.
func TestNoMoreFilesIsNoWorkersFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		client := &http.Client{Transport: answers(func(*http.Request) (int, string, error) {
			if at := time.Since(began); at > 10*time.Second && at < 70*time.Second {
				return 0, "", &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}
			}
			return 200, "", nil
		})}
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		n := 0
		watchHealth(ctx, client, "http://worker", "", func(f finding) {
			if n++; !f.healthy {
				t.Errorf("after %v: %s", time.Since(began), f.why)
			}
		})
		if n < 25 {
			t.Errorf("told %d times", n)
		}
	})
}

// A worker is asked ten times a second until it is healthy, and then once; one that
// leaves the question hanging is told after five seconds, and asked again.
func TestHealthIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		client := &http.Client{Transport: answers(func(r *http.Request) (int, string, error) {
			at := time.Since(began)
			switch {
			case at < time.Second:
				return 0, "", errors.New("connection refused")
			case r.URL.Path != "/health":
				return 200, `{"data":[{"id":"m"}]}`, nil
			case at < 10*time.Second:
				return 200, "", nil
			case at < 30*time.Second: // hangs
				<-r.Context().Done()
				return 0, "", r.Context().Err()
			}
			return 200, "", nil
		})}
		type told struct {
			at      time.Duration
			finding finding
		}
		var list []told
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		watchHealth(ctx, client, "http://worker", "", func(f finding) { list = append(list, told{time.Since(began), f}) })
		count := func(from, to time.Duration, healthy bool) (n int) {
			for _, x := range list {
				if x.at >= from && x.at < to && x.finding.healthy == healthy {
					n++
				}
			}
			return n
		}
		if n := count(0, time.Second, false); n != 10 {
			t.Errorf("%d questions in the first second; want 10", n)
		}
		if n := count(time.Second, 10*time.Second, true); n != 9 {
			t.Errorf("%d questions in the next nine; want 9", n)
		}
		if n := count(10*time.Second, 31*time.Second, false); n != 4 {
			t.Errorf("%d answers that hung; want 4, of five seconds each and a pause", n)
		}
		if last := list[len(list)-1]; !last.finding.healthy {
			t.Errorf("at last: %+v", last)
		}
		for i, x := range list {
			if (x.finding.models != nil) != (i == 10) {
				t.Errorf("answer %d tells the models %v; want them once, with the first good one", i, x.finding.models)
			}
		}
	})
}

// A door is told a new set at once, and the same one every second, which renews the
// lease; what it refuses is told with what it obeys instead.
func TestDoorIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // the clock of the test orders the two sides, but not for the race detector
		var puts []time.Duration
		began, obeys := time.Now(), uint64(3)
		d := newDoor("d", "/nowhere", false)
		d.client = &http.Client{Transport: answers(func(r *http.Request) (int, string, error) {
			mu.Lock()
			defer mu.Unlock()
			if r.Method == http.MethodGet {
				text, err := json.Marshal(control.State{Schema: 1, Epoch: obeys})
				return 200, string(text), err
			}
			var set control.WorkerSet
			if err := json.NewDecoder(r.Body).Decode(&set); err != nil {
				return 0, "", err
			}
			puts = append(puts, time.Since(began))
			if set.Epoch < obeys {
				return http.StatusConflict, "", nil
			}
			text, err := json.Marshal(control.Ack{Epoch: set.Epoch, Version: set.Version, LeaseSeconds: 30})
			return 200, string(text), err
		})}
		var set atomic.Pointer[control.WorkerSet]
		set.Store(&control.WorkerSet{Epoch: 3, Version: 1})
		ctx, cancel := context.WithCancel(t.Context())
		var refused *control.State
		acks := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			d.follow(ctx, &set, time.Now, func(n doorUpdate) {
				mu.Lock()
				defer mu.Unlock()
				if n.ack != nil {
					acks++
				}
				if n.refused != nil {
					refused = n.refused
				}
			})
		}()
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		mu.Lock()
		if len(puts) != 4 || acks != 4 {
			t.Errorf("told at %v, %d acknowledged; want at once and every second", puts, acks)
		}
		mu.Unlock()
		set.Store(&control.WorkerSet{Epoch: 3, Version: 2})
		d.wake()
		synctest.Wait()
		mu.Lock()
		if len(puts) != 5 || puts[4] != 3500*time.Millisecond {
			t.Errorf("a new set is told at %v; want at once", puts)
		}
		obeys = 7
		mu.Unlock()
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		mu.Lock()
		if refused == nil || refused.Epoch != 7 {
			t.Errorf("refused: %+v; want the epoch that it obeys", refused)
		}
		mu.Unlock()
		cancel()
		<-done
	})
}

// lister is a driver that can only be asked for its workers.
type lister struct {
	driver.Driver
	list func() []driver.Instance
}

func (l lister) List(context.Context) ([]driver.Instance, error) { return l.list(), nil }

// Several ask a driver for its workers, and what is taken last is the newest: one who
// asks while another's answer is long in coming waits for it.
func TestAnswersKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Supervisor{inbox: make(chan func(), 2), ctx: t.Context(), fleet: newFleet()}
		var now, asked atomic.Int32 // what the driver would see
		d := lister{list: func() []driver.Instance {
			seen := now.Load()
			if asked.Add(1) == 1 {
				time.Sleep(10 * time.Second)
			}
			return []driver.Instance{{ID: "w", Generation: uint64(seen)}}
		}}
		r := newRunner("d", d)
		r.listed = true
		s.runners = map[string]*runner{"d": r}
		go s.list(t.Context(), r)
		synctest.Wait()
		now.Store(1)
		go s.list(t.Context(), r)
		time.Sleep(time.Minute)
		synctest.Wait()
		s.drain()
		if got := s.fleet.of("w").instance.Generation; got != 1 || asked.Load() != 2 {
			t.Errorf("asked %d times; %d was taken last, want 1", asked.Load(), got)
		}
	})
}
