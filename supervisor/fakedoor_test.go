package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"roundhouse/balancer/control"
)

// fakeDoor is a door that speaks the private socket to the letter, and passes
// requests on without a second try: what the supervisor does to a worker with
// requests on it is seen at once.
type fakeDoor struct {
	mu       sync.Mutex
	id       string
	set      control.WorkerSet
	inFlight map[string]int // by worker and generation
	reached  map[string]bool
	served   map[string]int64
	turn     int
	known    chan struct{} // closed at the first worker set
	lease    time.Duration // 0: ten seconds, and no other holder is kept out
	until    time.Time     // it runs
	log      []control.WorkerSet
	first    sync.Once
}

func key(pool string, w control.Worker) string {
	data, _ := json.Marshal([]any{pool, w.Name, w.Generation})
	return string(data)
}

func balanceFake(args []string) error {
	flags := flag.NewFlagSet("balance", flag.ContinueOnError)
	fd := flags.Int("listener-fd", 0, "")
	socket := flags.String("socket", "", "")
	id := flags.String("id", "", "")
	for _, ignored := range []string{"state-dir", "batches", "usage", "log-format"} {
		flags.String(ignored, "", "")
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	file := os.NewFile(uintptr(*fd), "listener")
	front, err := net.FileListener(file)
	if err != nil {
		return err
	}
	file.Close() // as the real one does: the number is soon another file's
	private, err := net.Listen("unix", *socket)
	if err != nil {
		return err
	}
	d := newFakeDoor(*id)
	signalled, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	asked, told := context.WithCancel(signalled) // what is told first leaves the signal without effect
	defer told()
	public := &http.Server{Handler: http.HandlerFunc(d.pass)}
	go func() { _ = http.Serve(private, d.control(told)) }()
	go d.reach(asked)
	var accepting sync.WaitGroup
	accepting.Go(func() {
		select {
		case <-d.known: // a door accepts nobody before it knows its workers
			_ = public.Serve(front)
		case <-asked.Done():
		}
	})
	<-asked.Done()
	front.Close()
	accepting.Wait() // Shutdown does not wait for who is being accepted meanwhile
	return public.Shutdown(context.Background())
}

func newFakeDoor(id string) *fakeDoor {
	return &fakeDoor{id: id, inFlight: map[string]int{}, reached: map[string]bool{}, served: map[string]int64{}, known: make(chan struct{})}
}

// control is the private socket.
func (d *fakeDoor) control(told func()) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /worker-set", d.put)
	mux.HandleFunc("GET /state", d.state)
	mux.HandleFunc("POST /shutdown", func(http.ResponseWriter, *http.Request) { told() })
	return mux
}

func (d *fakeDoor) put(w http.ResponseWriter, r *http.Request) {
	var set control.WorkerSet
	if err := json.NewDecoder(r.Body).Decode(&set); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if set.Epoch < d.set.Epoch || d.lease > 0 && set.Holder != d.set.Holder && time.Now().Before(d.until) {
		w.WriteHeader(http.StatusConflict)
		return
	}
	if d.set.Holder != set.Holder {
		d.log = append(d.log, set)
	}
	d.set = set
	lease := d.lease
	if lease == 0 {
		lease = 10 * time.Second
	}
	d.until = time.Now().Add(lease)
	d.first.Do(func() { close(d.known) })
	_ = json.NewEncoder(w).Encode(control.Ack{Door: d.id, Epoch: set.Epoch, Version: set.Version, LeaseSeconds: lease.Seconds()})
}

// reach asks every worker of the set for its health.
func (d *fakeDoor) reach(ctx context.Context) {
	for ctx.Err() == nil {
		d.mu.Lock()
		set := d.set
		d.mu.Unlock()
		for _, p := range set.Pools {
			for _, w := range p.Workers {
				res, err := http.Get(w.URL + "/health")
				if err == nil {
					res.Body.Close()
				}
				d.mu.Lock()
				d.reached[key(p.Name, w)] = err == nil
				d.mu.Unlock()
			}
		}
		<-time.After(50 * time.Millisecond)
	}
}

func (d *fakeDoor) state(w http.ResponseWriter, _ *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	st := control.State{Schema: 1, Door: d.id, PID: os.Getpid(), At: time.Now(), Phase: "ready", Build: os.Getenv("FAKE_BUILD"), Epoch: d.set.Epoch, Set: d.set.Version}
	for _, p := range d.set.Pools {
		for _, wk := range p.Workers {
			k := key(p.Name, wk)
			st.Streams += d.inFlight[k]
			st.Workers = append(st.Workers, control.WorkerState{
				ID: p.Name + "/" + wk.Name, Generation: wk.Generation, State: wk.State, Reached: d.reached[k],
				Requests: control.Requests{InFlight: d.inFlight[k]}, Served: d.served[k], Tokens: d.served[k],
			})
		}
	}
	_ = json.NewEncoder(w).Encode(st)
}

// pick takes the ready workers in turns and counts the request in.
func (d *fakeDoor) pick() (url, k string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.set.Pools {
		for i := range p.Workers {
			w := p.Workers[(d.turn+i)%len(p.Workers)]
			if w.State == "ready" {
				d.turn += i + 1
				k = key(p.Name, w)
				d.inFlight[k]++
				return w.URL, k
			}
		}
	}
	return "", ""
}

func (d *fakeDoor) pass(w http.ResponseWriter, r *http.Request) {
	url, k := d.pick()
	if url == "" {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer func() {
		d.mu.Lock()
		d.inFlight[k]--
		d.served[k]++
		d.mu.Unlock()
	}()
	req, err := http.NewRequestWithContext(r.Context(), r.Method, url+r.URL.Path, r.Body)
	if err != nil {
		panic(err)
	}
	res, err := client.Do(req)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer res.Body.Close()
	w.Header().Set("X-Roundhouse-Worker", k)
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadBytes('\n')
		_, _ = w.Write(line)
		_ = http.NewResponseController(w).Flush()
		if err == io.EOF {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler) // the client sees a broken stream
		}
	}
}
