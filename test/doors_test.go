package test

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"roundhouse/balancer/sim"
	"roundhouse/test/ports"
)

// doors are `roundhouse balance` in several processes before the same two workers, as the
// pods of a Deployment, and the addresses that their Service names.
type doors struct {
	*testing.T
	config string // with a place for the door's address and the admin API's
	spare  []string

	mu     sync.Mutex
	serves []*aDoor // what the Service names

	asked, cut, retried atomic.Int64
}

// aDoor is a door of several.
type aDoor struct {
	*system
	client *http.Client // its connections are kept
	killed atomic.Bool
	open   atomic.Int64 // requests that the load has sent to it, and is about to
	begun  atomic.Int64 // those of them that are answered
}

func newDoors(t *testing.T, n int) *doors {
	t.Helper()
	ds := &doors{T: t}
	var peers []string
	for range n {
		ds.spare = append(ds.spare, ports.Address(t))
		peers = append(peers, fmt.Sprintf("%q", ds.spare[len(ds.spare)-1]))
	}
	var workers string
	for _, name := range []string{"a", "b"} {
		w := sim.New(sim.Options{Words: 400, Pace: 3 * time.Millisecond})
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		workers += fmt.Sprintf("  worker %q {\n    url = %q\n  }\n", name, w.URL)
	}
	ds.config = fmt.Sprintf(`log {
  access = false
}
door {
  listen = %%q
  peers  = [%s]
  key "team" {
    sha256 = ["%x"]
    models = ["*"]
    month_budget {
      requests = 1000000
    }
  }
}
admin {
  listen = %%q
  token  = %q
}
pool "chat" {
  driver = "static"
%s}
`, strings.Join(peers, ", "), sha256.Sum256([]byte(teamKey)), hostsToken, workers)
	return ds
}

// add starts a door, and has the Service name it once it is ready.
func (ds *doors) add() *aDoor {
	ds.Helper()
	at, admin := ports.Address(ds.T), ds.spare[0]
	ds.spare = ds.spare[1:]
	file := filepath.Join(ds.TempDir(), "roundhouse.hcl")
	if err := os.WriteFile(file, fmt.Appendf(nil, ds.config, at, admin), 0o600); err != nil {
		ds.Fatal(err)
	}
	d := &aDoor{
		system: &system{t: ds.T, out: newOutput(), Door: "http://" + at, Admin: "http://" + admin, token: hostsToken},
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}},
	}
	ds.Cleanup(d.client.CloseIdleConnections)
	d.cmd = exec.Command(built.Path(ds.T, "roundhouse"), "balance", "-c", file)
	d.cmd.Stdout, d.cmd.Stderr = d.out, d.out
	if err := d.cmd.Start(); err != nil {
		ds.Fatal(err)
	}
	ds.Cleanup(func() {
		if !d.killed.Load() {
			d.client.CloseIdleConnections()
			d.stop()
		}
	})
	poll(ds.T, "the door is ready", func() bool {
		resp, err := d.client.Get(d.Door + "/health")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, d.out.String)
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.serves = append(ds.serves, d)
	return d
}

// remove has the Service name a door no more, and returns how many requests are its own.
func (ds *doors) remove(d *aDoor) int64 {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.serves = slices.DeleteFunc(ds.serves, func(other *aDoor) bool { return other == d })
	return d.open.Load()
}

// any is the door that a new request of the load goes to.
func (ds *doors) any() *aDoor {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d := ds.serves[int(ds.asked.Add(1))%len(ds.serves)]
	d.open.Add(1)
	return d
}

// answered asks a door that any has named.
func (d *aDoor) answered(prompt string) error {
	defer d.open.Add(-1)
	_, _, err := d.ask(prompt, 20, func() { d.begun.Add(1) }, func() { d.begun.Add(-1) })
	return err
}

// ask asks a door, and returns the answer's worker, its id and whether it came whole. It
// tells that an answer has begun, and that it is over.
func (d *aDoor) ask(prompt string, words int, begun, over func()) (worker, id string, err error) {
	body, err := json.Marshal(map[string]any{"model": "sim", "stream": true, "prompt": prompt, "max_tokens": words})
	if err != nil {
		return "", "", err
	}
	req, err := http.NewRequest("POST", d.Door+"/v1/completions", strings.NewReader(string(body)))
	if err != nil {
		return "", "", err
	}
	req.Header.Set("Authorization", "Bearer "+teamKey)
	req.Header.Set("Content-Type", "application/json")
	resp, err := d.client.Do(req)
	if err != nil {
		return "", "", err
	}
	defer resp.Body.Close()
	begun()
	defer over()
	last := ""
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if lines.Text() != "" {
			last = lines.Text()
		}
	}
	if err := lines.Err(); err != nil {
		return "", "", err
	}
	if resp.StatusCode != http.StatusOK || last != "data: [DONE]" {
		return "", "", fmt.Errorf("%s, and it ends with %q", resp.Status, last)
	}
	return resp.Header.Get("X-Roundhouse-Worker"), resp.Header.Get("X-Request-Id"), nil
}

// load has clients ask whichever door until end is called. One whose stream is cut asks
// again, another door; that must come whole.
func (ds *doors) load(clients int) (end func()) {
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				d, prompt := ds.any(), fmt.Sprint("client ", i, " round ", n)
				err := d.answered(prompt)
				if err == nil {
					continue
				}
				if !d.killed.Load() {
					ds.Errorf("a door that nobody killed: %v\n%s", err, d.out)
					return
				}
				ds.cut.Add(1)
				if err := ds.any().answered(prompt); err != nil {
					ds.Errorf("a request that was sent again: %v", err)
					return
				}
				ds.retried.Add(1)
			}
		})
	}
	return sync.OnceFunc(func() {
		close(stop)
		all.Wait()
	})
}

// used is how many requests of the key a door knows of, of all doors; -1: it does not say.
func (d *aDoor) used() (n int) {
	_, after, found := strings.Cut(d.asked("/metrics"), "\nroundhouse_key_budget_used{key=\"team\",kind=\"requests\",period=\"month\"} ")
	if _, err := fmt.Sscan(after, &n); !found || err != nil {
		return -1
	}
	return n
}

// TestSeveralDoors runs two doors as the pods of a Deployment. They share a key's budget,
// and what is cached where. One is killed under load: no more is cut than the streams whose
// sockets it held, and what is sent again comes whole. Both are rolled: nothing is cut, and
// the new ones know what the old ones counted.
func TestSeveralDoors(t *testing.T) {
	t.Parallel()
	ds := newDoors(t, 5)
	a, b := ds.add(), ds.add()
	total := 0
	shared := func(d, other *aDoor) bool { // what d served is known to the other
		prompt := strings.Repeat(fmt.Sprintf("conversation %d ", total), 400)
		was, _, err := d.ask(prompt, 20, func() {}, func() {})
		if err != nil {
			t.Fatal(err)
		}
		total++
		poll(t, fmt.Sprintf("the other door knows of %d requests", total), func() bool { return other.used() == total }, other.out.String)
		now, id, err := other.ask(prompt, 20, func() {}, func() {})
		if err != nil {
			t.Fatal(err)
		}
		total++
		poll(t, "the count comes back", func() bool { return d.used() == total }, d.out.String)
		return now == was && strings.Contains(other.asked("/api/decisions/"+id), `"reason":"prefix"`)
	}
	poll(t, "a conversation goes on where its prefix is, by the other door", func() bool { return shared(a, b) }, b.out.String)
	poll(t, "and the other way round", func() bool { return shared(b, a) }, a.out.String)

	end := ds.load(6)
	defer end()
	some := func(d *aDoor) {
		poll(t, "the door has served some", func() bool { return d.used() >= total+50 && d.open.Load() > 0 }, d.out.String)
	}
	some(a)
	a.killed.Store(true)
	held := ds.remove(a)
	if err := a.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = a.cmd.Wait() // it says that it was killed
	total += 50
	c := ds.add()
	some(c)
	if cut := ds.cut.Load(); cut > held {
		t.Errorf("%d streams were cut, the door that was killed held %d", cut, held)
	}
	for _, old := range []*aDoor{b, c} { // a rollout: the new one first, then the Service leaves out the old one
		ds.add()
		ds.replace(old)
	}
	end()
	if ds.cut.Load() != ds.retried.Load() {
		t.Errorf("%d streams were cut, %d came whole when they were sent again", ds.cut.Load(), ds.retried.Load())
	}
	x, y := ds.serves[0], ds.serves[1]
	poll(t, "both new doors agree", func() bool { return x.used() == y.used() && x.used() >= total }, func() string { return fmt.Sprint(x.used(), " and ", y.used(), ", at least ", total) })
	t.Logf("%d requests; the door that was killed held %d, %d were cut", ds.asked.Load(), held, ds.cut.Load())
}

// replace ends a door as a rollout does: the Service names it no more, what is on its way
// arrives, and SIGTERM finds answers that are not over.
func (ds *doors) replace(old *aDoor) {
	ds.Helper()
	begun, over := make(chan struct{}), make(chan error, 1)
	go func() {
		_, _, err := old.ask("a long answer", 400, sync.OnceFunc(func() { close(begun) }), func() {})
		over <- err
	}()
	select {
	case <-begun:
	case err := <-over:
		ds.Fatal(err)
	}
	ds.remove(old)
	poll(ds.T, "what is on its way to the old door is there", func() bool { return old.begun.Load() == old.open.Load() }, old.out.String)
	if err := old.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		ds.Fatal(err)
	}
	if err := <-over; err != nil {
		ds.Errorf("an answer of a door that is replaced: %v", err)
	}
	poll(ds.T, "the old door's answers are over", func() bool { return old.open.Load() == 0 }, old.out.String)
	old.client.CloseIdleConnections() // which it would wait for
	if err := old.cmd.Wait(); err != nil {
		ds.Errorf("%v\n%s", err, old.out)
	}
}
