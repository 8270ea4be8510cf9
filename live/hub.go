package live

import (
	"bytes"
	"context"
	"strconv"
	"sync"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/live/history"
	"roundhouse/measure/verdict"
)

// How often is looked: while somebody looks on, and while nobody does, for the history.
const (
	watched   = time.Second
	unwatched = history.Step
)

// A change that is longer than heavy comes half as often.
const heavy = 128 << 10

// mostStreams is how many may look on, and behind how many messages one is cut.
const (
	mostStreams = 1024
	mostBehind  = 64
)

// Options are what a hub is made of.
type Options struct {
	Source  Source
	Version string
	Assets  string // names the console's files
	Budget  int    // of the history, in bytes; 0: history.Budget
}

// Hub looks at a source, and tells those who look on.
type Hub struct {
	options Options
	store   *history.Store
	kick    chan struct{} // somebody came: look now

	mu      sync.Mutex
	viewers map[*viewer]struct{}
	state   *State        // nil: nothing was seen yet
	whole   []byte        // the state as a message; nil: it is not made yet
	seen    chan struct{} // closed at the next look
	ended   bool
	marks   []Event // the latest, for the history
	failure error   // why the last look failed

	// All below belongs to Run.
	at      time.Time // of this look
	last    time.Time // of the look before
	quiet   int       // looks without a change, as the last was heavy
	watch   verdict.Watch
	counter counter
	windows map[string]*window // by pool
	told    lastSent
	speeds  map[string]spoken // of requests in flight
	sampled time.Time
	tokens  map[string]*workerSums // of workers, since the last sample
}

// New makes a hub. Run has it look.
func New(o Options) *Hub {
	if o.Budget == 0 {
		o.Budget = history.Budget
	}
	return &Hub{
		options: o, store: history.New(o.Budget), kick: make(chan struct{}, 1), viewers: map[*viewer]struct{}{}, seen: make(chan struct{}),
		counter: newCounter(), windows: map[string]*window{}, speeds: map[string]spoken{}, tokens: map[string]*workerSums{},
	}
}

// Run looks until ctx ends.
func (h *Hub) Run(ctx context.Context) {
	events, stop := h.options.Source.Follow(ctx)
	defer stop()
	defer h.close()
	if old, err := h.options.Source.Events(0, mostMarks); err == nil {
		h.mark(old...)
	}
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			h.tellEvent(e)
			continue
		case <-h.kick:
			if time.Since(h.at) < watched/2 {
				if h.count() > 0 {
					tick.Reset(watched)
				}
				continue // what is known is fresh
			}
		case <-tick.C:
		}
		h.look(ctx)
		every := unwatched
		if h.count() > 0 {
			every = watched
		}
		tick.Reset(every)
	}
}

func (h *Hub) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.viewers)
}

// look looks once, and tells what is another than it was.
func (h *Hub) look(ctx context.Context) {
	now, err := h.options.Source.Look(ctx)
	if err != nil {
		h.mu.Lock()
		h.failure = err
		h.mu.Unlock()
		return
	}
	h.last, h.at = h.at, time.Now().UTC()
	h.account(&now)
	figures := h.figures(&now)
	s := &State{
		Schema: 1, At: h.at, Door: now.Door, Doors: now.Doors, Supervisor: now.Supervisor, Pools: now.Pools, Figures: figures,
		Workers: now.Workers, Rotations: now.Rotations, Schedules: now.Schedules, Canaries: now.Canaries, Verdict: h.watch.Judge(h.facts(&now, figures)),
	}
	sample := h.sample(&now, figures)
	h.tell(ctx, s, sample)
}

// account takes what the doors have counted since the last look.
func (h *Hub) account(now *Now) {
	pools, workers := h.counter.take(now.Counts)
	seconds := 0.0
	if !h.last.IsZero() {
		seconds = h.at.Sub(h.last).Seconds()
	}
	known := map[string]bool{}
	for i := range now.Pools {
		name := now.Pools[i].Name
		known[name] = true
		s := sums{}
		if p := pools[name]; p != nil {
			s = *p
		}
		if s.seconds = seconds; h.windows[name] == nil {
			h.windows[name] = &window{}
		}
		h.windows[name].add(s)
	}
	for name := range h.windows {
		if !known[name] {
			delete(h.windows, name)
		}
	}
	for id, s := range workers {
		t := h.tokens[id]
		if t == nil {
			t = &workerSums{}
			h.tokens[id] = t
		}
		t.failed += s.failed
		t.tokens += s.tokens
	}
}

// tell sends each viewer what is new.
func (h *Hub) tell(ctx context.Context, s *State, sample *Sample) {
	var live []control.InFlight
	if h.wantRequests() {
		live = h.inFlight(ctx)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	first := h.state == nil
	h.state, h.whole, h.failure = s, nil, nil
	close(h.seen)
	h.seen = make(chan struct{})
	if first {
		h.told.change(s)
		return
	}
	if h.quiet--; h.quiet <= 0 {
		data := message("change", "", h.told.change(s))
		if h.quiet = 1; len(data) > heavy {
			h.quiet = 2
		}
		h.broadcast(data)
	} else {
		h.broadcast(message("change", "", Change{At: s.At})) // or who looks on takes it for silence
	}
	if sample != nil {
		h.tellSample(sample)
	}
	made := map[string][]byte{}
	for v := range h.viewers {
		if v.requests == "" {
			continue
		}
		if made[v.requests] == nil {
			made[v.requests] = message("requests", "", chosen(live, v.requests, h.at))
		}
		h.send(v, made[v.requests])
	}
}

// tellSample sends the newest figures of the pools, and to those who look at a worker
// that one's. h.mu is held.
func (h *Hub) tellSample(all *Sample) {
	made := map[string][]byte{}
	for v := range h.viewers {
		if made[v.worker] == nil {
			s := Sample{At: all.At, Step: all.Step, Series: []SampleValue{}}
			for _, x := range all.Series {
				if x.Worker == nil || *x.Worker == v.worker {
					s.Series = append(s.Series, x)
				}
			}
			made[v.worker] = message("sample", "", s)
		}
		h.send(v, made[v.worker])
	}
}

func (h *Hub) tellEvent(e Event) {
	h.mark(e)
	data := message("event", strconv.FormatUint(e.ID, 10), e)
	h.mu.Lock()
	defer h.mu.Unlock()
	for v := range h.viewers {
		h.sendEvent(v, e.ID, data)
	}
}

// broadcast sends one message to all. h.mu is held.
func (h *Hub) broadcast(data []byte) {
	for v := range h.viewers {
		h.send(v, data)
	}
}

// send hands a message to a viewer; one that does not keep up is cut. h.mu is held.
func (h *Hub) send(v *viewer, data []byte) { h.sendEvent(v, 0, data) }

func (h *Hub) sendEvent(v *viewer, event uint64, data []byte) {
	select {
	case v.messages <- packet{event, data}:
	default:
		h.cut(v, "slow")
	}
}

// cut ends a viewer's stream. h.mu is held.
func (h *Hub) cut(v *viewer, why string) {
	if _, there := h.viewers[v]; there {
		delete(h.viewers, v)
		v.why = why
		close(v.messages)
	}
}

// close ends all streams.
func (h *Hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	for v := range h.viewers {
		h.cut(v, "ending")
	}
}

// message is a server-sent event.
func message(name, id string, v any) []byte {
	var b bytes.Buffer
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	b.WriteString("event: " + name + "\ndata: ")
	b.Write(encoded(v))
	b.WriteString("\n\n")
	return b.Bytes()
}
