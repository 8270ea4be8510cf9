package balancer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"roundhouse/balancer"
	"roundhouse/balancer/control"
	"roundhouse/balancer/extproc"
	"roundhouse/balancer/extproc/gatewaytest"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// picks are a door's picker and what belongs to it.
type picks struct {
	*rig
	server *extproc.Server
	addr   string
	conn   *grpc.ClientConn
}

// newPicks starts a door with n workers and a picker before them.
func newPicks(t *testing.T, n int, o extproc.Options, change func(*control.WorkerSet)) *picks {
	t.Helper()
	var workers []*sim.Worker
	for range n {
		workers = append(workers, sim.New(sim.Options{}))
	}
	p := &picks{rig: newRig(t, workers, change)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Host, o.MostBody, o.Log = p.door.Picker(balancer.PickerOptions{Pool: "p"}), 64<<20, slog.New(slog.DiscardHandler)
	if p.server, err = extproc.New(o); err != nil {
		t.Fatal(err)
	}
	go p.server.Serve(l)
	t.Cleanup(p.server.Stop)
	p.server.Ready(true)
	p.addr = l.Addr().String()
	p.conn = gatewaytest.Dial(t, p.addr, false)
	return p
}

// begin sends a request up to where it is to be chosen for.
func (p *picks) begin(h gatewaytest.Head, body string) *gatewaytest.Call {
	p.t.Helper()
	c := gatewaytest.Begin(p.t, p.conn)
	c.Request(h)
	c.Body(body, true)
	return c
}

const chatPath = "/v1/chat/completions"

// inFlight is how many requests the door has at its workers, by their accounts.
func (p *picks) inFlight() (n int) {
	for _, w := range p.door.State().Workers {
		n += w.Requests.InFlight
	}
	return n
}

// free waits until nothing is charged any more.
func (p *picks) free() {
	p.t.Helper()
	p.until("nothing is charged", func() bool {
		for _, w := range p.door.State().Workers {
			if w.KV.ChargedTokens != 0 {
				return false
			}
		}
		return p.inFlight() == 0
	})
}

// TestPickedDuplex goes through one request of the protocol's own mode: nothing is said
// before the body is whole; then come the head with its endpoint, both ways, and the
// body in pieces; the charge ends with the answer.
func TestPickedDuplex(t *testing.T) {
	p := newPicks(t, 2, extproc.Options{}, nil)
	body := fmt.Sprintf(chatBody, true, `,"pad":"`+strings.Repeat("x", 150_000)+`"`)
	c := gatewaytest.Begin(t, p.conn)
	c.Request(gatewaytest.Post(chatPath, "x-llm-d-inference-fairness-id", "a", "x-roundhouse-seq", "9"))
	c.Body(body[:70_000], false)
	c.Body(body[70_000:], false)
	c.Body("", true)
	c.Body("again", true) // as some gateways do
	head := c.Must()
	endpoint := head.Set["x-gateway-destination-endpoint"]
	if head.To != 1 || !head.Clear || endpoint == "" || head.Metadata != endpoint || !strings.Contains(p.workers[0].URL+p.workers[1].URL, endpoint) {
		t.Fatalf("the head: %+v", head)
	}
	for _, name := range []string{"x-llm-d-inference-fairness-id", "x-gateway-inference-objective", "x-roundhouse-seq", "x-roundhouse-door"} {
		if !slices.Contains(head.Remove, name) {
			t.Errorf("a worker would see %s", name)
		}
	}
	var got strings.Builder
	for end := false; !end; {
		piece := c.Must()
		if piece.To != 3 || !piece.Streamed || len(piece.Body) > 62_000 {
			t.Fatalf("a piece: %+v", piece)
		}
		got.WriteString(piece.Body)
		end = piece.End
	}
	if got.String() != body {
		t.Error("the body has changed on its way")
	}
	if p.inFlight() != 1 {
		t.Errorf("%d requests are charged", p.inFlight())
	}
	c.Answer(200, "text/event-stream", gatewaytest.Head{})
	if said := c.Must(); said.To != 2 || said.Set["x-roundhouse-worker"] == "" {
		t.Errorf("the answer's head: %+v", said)
	}
	for _, piece := range []string{oneEvent[:30], oneEvent[30:], endEvents} {
		c.AnswerBody(piece, piece == endEvents)
		if said := c.Must(); said.To != 4 || said.Body != piece || said.End != (piece == endEvents) {
			t.Errorf("%q came as %+v", piece, said)
		}
	}
	if _, err := c.Next(); err != io.EOF {
		t.Errorf("the stream ended with %v", err)
	}
	p.free()
	ended := p.door.Ended(control.EndedFilter{Limit: 1}).Ended
	if len(ended) != 1 || ended[0].Outcome != "ok" || ended[0].TTFTSeconds == nil || !ended[0].Streamed {
		t.Errorf("it is remembered as %+v", ended)
	}
}

// TestPickedWays has gateways speak the protocol in their other ways.
func TestPickedWays(t *testing.T) {
	p := newPicks(t, 1, extproc.Options{}, func(s *control.WorkerSet) {
		s.Routes = []configs.Route{{Name: "alias", Sticky: "none", KeepName: true, Targets: []configs.Target{{Model: "sim", Weight: 1}}}}
	})
	body := fmt.Sprintf(chatBody, false, "")
	renamed := strings.Replace(body, `"sim"`, `"alias"`, 1)
	t.Run("buffered", func(t *testing.T) {
		h := gatewaytest.Post(chatPath)
		h.Request, h.Response = gatewaytest.Buffered, gatewaytest.Buffered
		c := gatewaytest.Begin(t, p.conn)
		c.Request(h)
		if s := c.Must(); s.To != 1 || len(s.Set) != 0 {
			t.Errorf("the head was to be answered at once: %+v", s)
		}
		c.Body(renamed, true)
		s := c.Must()
		if s.To != 3 || s.Set["x-gateway-destination-endpoint"] == "" || s.Metadata == "" || !s.Replaced || s.Body != body || s.Set["content-length"] != fmt.Sprint(len(body)) {
			t.Errorf("the body: %+v", s)
		}
		c.Answer(200, "application/json", gatewaytest.Head{})
		if s := c.Must(); !slices.Contains(s.Remove, "content-length") {
			t.Errorf("the answer's head: %+v", s)
		}
		c.AnswerBody(`{"model":"sim","usage":{"prompt_tokens":3,"completion_tokens":2}}`, true)
		if s := c.Must(); !s.Replaced || s.Streamed || !strings.Contains(s.Body, `"alias"`) {
			t.Errorf("the answer: %+v", s)
		}
	})
	t.Run("old values, nothing said of modes, half closed", func(t *testing.T) {
		h := gatewaytest.Post(chatPath)
		h.Old, h.Silent = true, true
		c := p.begin(h, body)
		c.HalfClose()
		if s := c.Must(); s.Set["x-gateway-destination-endpoint"] == "" {
			t.Errorf("the head: %+v", s)
		}
		if s := c.Must(); !s.End || s.Body != body {
			t.Errorf("the body: %+v", s)
		}
		if _, err := c.Next(); err != io.EOF {
			t.Errorf("the stream ended with %v", err)
		}
		if p.inFlight() != 1 {
			t.Error("the request is not charged, though nobody has seen its answer")
		}
		p.free()
	})
	t.Run("trailers", func(t *testing.T) {
		c := gatewaytest.Begin(t, p.conn)
		c.Request(gatewaytest.Post(chatPath))
		c.Body(body, false)
		c.Trailers()
		if s := c.Must(); s.To != 1 {
			t.Errorf("the head: %+v", s)
		}
		if s := c.Must(); s.To != 3 || s.End || s.Body != body {
			t.Errorf("the body: %+v", s)
		}
		if s := c.Must(); s.To != 5 {
			t.Errorf("the trailers: %+v", s)
		}
		c.Leave()
	})
	t.Run("a head alone", func(t *testing.T) {
		for _, h := range []gatewaytest.Head{{Request: gatewaytest.Duplex, End: true}, {Request: gatewaytest.None}, {Request: gatewaytest.Streamed}} {
			h.Fields = [][2]string{{":method", "POST"}, {":path", chatPath}, {"content-length", "4000"}}
			c := gatewaytest.Begin(t, p.conn)
			c.Request(h)
			if s := c.Must(); s.To != 1 || s.Set["x-gateway-destination-endpoint"] == "" {
				t.Errorf("%+v", s)
			}
			if h.Request == gatewaytest.Streamed {
				c.Body("{}", true)
				if s := c.Must(); s.To != 3 || s.Replaced {
					t.Errorf("the body: %+v", s)
				}
			}
			c.Leave()
			p.free()
		}
	})
	t.Run("not the protocol", func(t *testing.T) {
		for _, b := range [][]byte{{0xff, 0xff}, {0x12}, {0x22, 0x02, 0x08, 0x01}, {}} {
			c := gatewaytest.Begin(t, p.conn)
			c.Raw(b)
			c.HalfClose()
			if s, err := c.Next(); err == nil {
				t.Errorf("%x was answered: %+v", b, s)
			}
		}
	})
	p.free()
}

// TestPickedRefusals asks for what cannot be served.
func TestPickedRefusals(t *testing.T) {
	p := newPicks(t, 1, extproc.Options{}, func(s *control.WorkerSet) {
		s.Door.Queue.MaxRequests = 1
		s.Door.Queue.MaxWait = configs.Duration(300 * time.Millisecond)
		s.Door.Memory = 2 << 20
		s.Door.Objectives = []configs.Objective{{Name: "batch", Priority: -5}}
	})
	body := fmt.Sprintf(chatBody, true, "")
	refused := func(t *testing.T, c *gatewaytest.Call, status int, reason string) {
		t.Helper()
		s := c.Must()
		if s.To != 7 || s.Status != status || s.Set[extproc.Dropped] != reason || !strings.Contains(s.Body, `"error"`) {
			t.Errorf("got %+v", s)
		}
		if _, err := c.Next(); err != io.EOF {
			t.Errorf("the stream ended with %v", err)
		}
	}
	t.Run("no JSON", func(t *testing.T) { refused(t, p.begin(gatewaytest.Post(chatPath), "{"), 400, "") })
	t.Run("an empty subset", func(t *testing.T) {
		h := gatewaytest.Post(chatPath)
		h.Narrowed = true
		refused(t, p.begin(h, body), 503, extproc.NoEndpoints)
	})
	t.Run("memory", func(t *testing.T) {
		refused(t, p.begin(gatewaytest.Post(chatPath), strings.Repeat("x", 3<<20)), 503, extproc.Saturated)
	})
	p.reset(func(w []control.Worker) { w[0].State = "draining" })
	t.Run("none is ready", func(t *testing.T) { refused(t, p.begin(gatewaytest.Post(chatPath), body), 503, extproc.NoEndpoints) })
	t.Run("a full queue", func(t *testing.T) {
		first := p.begin(gatewaytest.Post(chatPath), body)
		p.until("it waits", func() bool { return len(p.door.Queued()) == 1 })
		refused(t, p.begin(gatewaytest.Post(chatPath), body), 429, extproc.Saturated)
		first.Leave()
		p.until("it waits no more", func() bool { return len(p.door.Queued()) == 0 })
	})
	t.Run("what does not wait", func(t *testing.T) {
		refused(t, p.begin(gatewaytest.Post(chatPath, "x-gateway-inference-objective", "batch"), body), 503, extproc.NoEndpoints)
	})
	p.free()
}

// TestPickedServed has the gateway say that another worker has answered.
func TestPickedServed(t *testing.T) {
	p := newPicks(t, 2, extproc.Options{}, nil)
	c := p.begin(gatewaytest.Post(chatPath), fmt.Sprintf(chatBody, true, ""))
	endpoint := c.Must().Set["x-gateway-destination-endpoint"]
	c.Must()
	other := 0
	if strings.HasSuffix(p.workers[0].URL, endpoint) {
		other = 1
	}
	c.Answer(200, "text/event-stream", gatewaytest.Head{Served: strings.TrimPrefix(p.workers[other].URL, "http://")})
	name := fmt.Sprintf("p/%d", other+1)
	if got := c.Must().Set["x-roundhouse-worker"]; got != name {
		t.Errorf("the answer names %s, not %s", got, name)
	}
	for _, w := range p.door.State().Workers {
		if n := w.Requests.InFlight; (n == 1) != (w.ID == name) {
			t.Errorf("%s has %d", w.ID, n)
		}
	}
	c.Leave()
	p.free()
}

// TestPickedSubset narrows the choice to one of three workers, and keeps to it while the
// request waits.
func TestPickedSubset(t *testing.T) {
	p := newPicks(t, 3, extproc.Options{}, nil)
	want := strings.TrimPrefix(p.workers[1].URL, "http://")
	for range 5 {
		h := gatewaytest.Post(chatPath)
		h.Narrowed, h.Subset = true, []string{"192.0.2.1:1, " + want}
		c := p.begin(h, fmt.Sprintf(chatBody, true, ""))
		if got := c.Must().Set["x-gateway-destination-endpoint"]; got != want {
			t.Errorf("chosen was %s", got)
		}
		defer c.Leave()
	}
}

// TestPickedToldToEnd ends a request in its answer, as an operator does.
func TestPickedToldToEnd(t *testing.T) {
	p := newPicks(t, 1, extproc.Options{}, nil)
	c := p.begin(gatewaytest.Post(chatPath), fmt.Sprintf(chatBody, true, ""))
	c.Must()
	c.Must()
	if !p.door.Cancel(p.door.Requests()[0].ID) {
		t.Fatal("it is not in flight")
	}
	if s := c.Must(); s.To != 7 || s.Set[extproc.Dropped] != extproc.Evicted {
		t.Errorf("got %+v", s)
	}
	p.free()
}

// TestPickedUnwatched lets the answer pass: the stream ends with the request, and the
// charge when the answer should have.
func TestPickedUnwatched(t *testing.T) {
	p := newPicks(t, 1, extproc.Options{Unwatched: true}, nil)
	c := p.begin(gatewaytest.Post(chatPath), fmt.Sprintf(chatBody, true, `,"max_tokens":2`))
	c.Must()
	c.Must()
	if _, err := c.Next(); err != io.EOF {
		t.Errorf("the stream ended with %v", err)
	}
	if p.inFlight() != 1 {
		t.Errorf("%d are charged", p.inFlight())
	}
	p.free()
}

// TestPickedHealth asks by every name for health, with TLS and without it.
func TestPickedHealth(t *testing.T) {
	p := newPicks(t, 1, extproc.Options{}, nil)
	state := func(secure bool) (out []string) {
		h := healthpb.NewHealthClient(gatewaytest.Dial(t, p.addr, secure))
		for _, name := range []string{"", "liveness", "readiness", "envoy.service.ext_proc.v3.ExternalProcessor", "inference-extension"} {
			r, err := h.Check(context.Background(), &healthpb.HealthCheckRequest{Service: name})
			if err != nil {
				t.Fatal(err)
			}
			if r.Status == healthpb.HealthCheckResponse_SERVING {
				out = append(out, name)
			}
		}
		return out
	}
	if got := state(true); len(got) != 5 {
		t.Errorf("serving are %v", got)
	}
	p.server.Ready(false)
	if got := state(false); len(got) != 1 || got[0] != "liveness" {
		t.Errorf("of one that leaves, serving are %v", got)
	}
	c := p.begin(gatewaytest.Post(chatPath), fmt.Sprintf(chatBody, true, ""))
	if s := c.Must(); s.To != 1 {
		t.Errorf("one that leaves serves on: %+v", s)
	}
	c.Leave()
	p.free()
}

// TestPickedKeys holds requests to the keys of the door.
func TestPickedKeys(t *testing.T) {
	p := newPicks(t, 1, extproc.Options{}, func(s *control.WorkerSet) {
		s.Door.Keys = []configs.Key{{Name: "k", SHA256: []string{testKey}, Models: []string{"sim"}, MaxConcurrent: 1}}
	})
	body := fmt.Sprintf(chatBody, true, "")
	if s := p.begin(gatewaytest.Post(chatPath), body).Must(); s.Status != 401 || s.Set["www-authenticate"] != "Bearer" {
		t.Errorf("without a key: %+v", s)
	}
	first := p.begin(gatewaytest.Post(chatPath, "authorization", "Bearer test"), body)
	if s := first.Must(); s.To != 1 || !slices.Contains(s.Remove, "authorization") {
		t.Errorf("with one: %+v", s)
	}
	if s := p.begin(gatewaytest.Post(chatPath, "authorization", "Bearer test"), body).Must(); s.Status != 429 || s.Set["retry-after"] == "" {
		t.Errorf("above its limit: %+v", s)
	}
	first.Leave()
	p.free()
}

// TestPickedClosed ends the door under an answer: the picker lets go of it, and the
// stream ends in order.
func TestPickedClosed(t *testing.T) {
	p := newPicks(t, 1, extproc.Options{}, nil)
	c := p.begin(gatewaytest.Post(chatPath), fmt.Sprintf(chatBody, true, ""))
	c.Must()
	c.Must()
	c.Answer(200, "text/event-stream", gatewaytest.Head{})
	c.Must()
	p.door.CutAll()
	if _, err := c.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
	p.free()
}
