package bench

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"roundhouse/test/leaks"
)

// engine answers completions at once and remembers how many were there together.
type engine struct {
	now, most, all atomic.Int64
	hold           chan struct{} // answers wait for it, if not nil
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // a handler reads what it was sent
	e.all.Add(1)
	n := e.now.Add(1)
	defer e.now.Add(-1)
	for most := e.most.Load(); n > most && !e.most.CompareAndSwap(most, n); most = e.most.Load() {
	}
	if e.hold != nil {
		select {
		case <-e.hold:
		case <-r.Context().Done():
			return
		}
	}
	w.Header().Set("x-roundhouse-worker", "chat/1")
	fmt.Fprint(w, `data: {"choices":[{"text":"a"}]}`+"\n\n"+`data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":1}}`+"\n\ndata: [DONE]\n\n")
}

func prompts(n int) []Request {
	all := make([]Request, n)
	for i := range all {
		all[i] = Request{Prompt: fmt.Sprint("p", i), Output: 1}
	}
	return all
}

func TestRun(t *testing.T) {
	defer leaks.None(t)
	e := &engine{}
	server := httptest.NewServer(e)
	defer server.Close()
	c := NewClient(server.URL, Completions, false)
	defer c.Close()

	// A closed loop never has more under way than its cap, and sends everything.
	o := Run(context.Background(), c, Plan{Requests: prompts(40), Due: make([]time.Duration, 40), Concurrency: 3, WarmUp: prompts(5)}, nil)
	if len(o.Samples) != 40 || e.all.Load() != 45 || e.most.Load() > 5 {
		t.Errorf("%d samples, %d requests, %d at once", len(o.Samples), e.all.Load(), e.most.Load())
	}
	m := Measure(o.Samples, o.Duration, Goal{}, []float64{99})
	if m.Completed != 40 || m.InputTokens != 160 || m.OutputTokens != 40 || o.Samples[7].Worker != "chat/1" {
		t.Errorf("%+v", m)
	}
	// An open loop sends at its times.
	due := Schedule(30, Load{Rate: 1000, Burstiness: 1}, rand.New(rand.NewPCG(1, 2)))
	o = Run(context.Background(), c, Plan{Requests: prompts(30), Due: due}, nil)
	for i := range o.Samples {
		if s := &o.Samples[i]; s.Due != due[i] || s.Sent < s.Due || !s.OK() {
			t.Fatalf("request %d: due %s, sent %s, error %q", i, s.Due, s.Sent, s.Err)
		}
	}
	server.CloseClientConnections()
}

// Who stops a run gets what there is: ended requests, and cut ones.
func TestRunIsStopped(t *testing.T) {
	defer leaks.None(t)
	e := &engine{hold: make(chan struct{}, 100)}
	server := httptest.NewServer(e)
	defer server.Close()
	c := NewClient(server.URL, Completions, false)
	defer c.Close()
	ctx, cancel := context.WithCancel(context.Background())
	for range 4 {
		e.hold <- struct{}{}
	}
	o := Run(ctx, c, Plan{Requests: prompts(20), Due: make([]time.Duration, 20), Concurrency: 2}, func(p Progress) {
		if p.Done == 4 {
			cancel()
		}
	})
	cancel()
	m := Measure(o.Samples, o.Duration, Goal{}, []float64{99})
	if !o.Stopped || m.Completed != 4 || m.Cut != 2 || m.Failed != 0 {
		t.Errorf("stopped %t: %d ended, %d cut, %d failed; want 4, 2 and 0", o.Stopped, m.Completed, m.Cut, m.Failed)
	}
	v := Judge(Plan{}, Load{Rate: math.Inf(1)}, o, m)
	if !strings.Contains(strings.Join(v.Notes, " "), "2 requests were cut") {
		t.Errorf("the verdict does not tell: %+v", v)
	}
}

// simulated are samples of an engine that serves one request after the other in a
// fixed time, under a load of a rate.
func simulated(rate float64, n int, serve time.Duration, seed uint64) Measurement {
	free := time.Duration(0)
	var samples []Sample
	for _, due := range Schedule(n, Load{Rate: rate, Burstiness: 1}, rand.New(rand.NewPCG(seed, 1))) {
		free = max(free, due) + serve
		samples = append(samples, Sample{Due: due, Sent: due, First: free, Last: free, End: free, Output: 1, Events: 1})
	}
	o := Outcome{Samples: samples, Duration: free, Client: Usage{Wall: free, Cores: 1}}
	l := Measurement{Load: Load{Rate: rate}, Outcome: o, Metrics: Measure(samples, free, Goal{TTFT: 500}, []float64{99})}
	l.Verdict = Judge(Plan{}, l.Load, o, l.Metrics)
	return l
}

// The sweep finds the rate that an engine of known capacity bears: of 10 requests a
// second, 99 % within five service times are met up to about 65 % of the capacity.
func TestSweep(t *testing.T) {
	n := uint64(0)
	runs, rate := Sweep(context.Background(), 10.0/2, SweepOptions{Goal: Goal{TTFT: 500}, Attainment: 0.99, MinRequests: 3000, Precision: 0.05, MaxRuns: 30},
		func(rate float64, requests int) Measurement {
			n++
			return simulated(rate, requests, 100*time.Millisecond, n)
		})
	if rate < 5 || rate > 8 {
		t.Errorf("found %.3g requests/s; want 5 to 8", rate)
	}
	for _, l := range runs {
		if l.Load.Rate > 12 && (l.Pass || !l.Saturated) {
			t.Errorf("at %.3g/s, of 10 possible: passes %t, saturated %t", l.Load.Rate, l.Pass, l.Saturated)
		}
		if l.Load.Rate < 5 && l.Saturated {
			t.Errorf("at %.3g/s, of 10 possible, it is called saturated", l.Load.Rate)
		}
	}
	if _, rate := Sweep(context.Background(), 1, SweepOptions{Goal: Goal{TTFT: 1}, Attainment: 0.99, MinRequests: 300, Precision: 0.05, MaxRuns: 30},
		func(rate float64, requests int) Measurement { return simulatedGoal(rate, requests) }); rate != 0 {
		t.Errorf("a goal that nobody meets is met at %g/s", rate)
	}
}

func simulatedGoal(rate float64, n int) Measurement {
	l := simulated(rate, n, 100*time.Millisecond, 1)
	l.Metrics = Measure(l.Outcome.Samples, l.Metrics.Duration, Goal{TTFT: 1}, []float64{99})
	return l
}

// The verdict names what spoils a run.
func TestJudge(t *testing.T) {
	f := func(want string, load Load, o Outcome) {
		t.Helper()
		v := Judge(Plan{}, load, o, Measure(o.Samples, time.Second, Goal{}, []float64{99}))
		if want == "" && !v.Valid || want != "" && (v.Valid || !strings.Contains(strings.Join(v.Reasons, "; "), want)) {
			t.Errorf("verdict %+v; want %q", v, want)
		}
	}
	even := func(late time.Duration, spread float64) (o Outcome) {
		for i := range 100 {
			at := time.Duration(float64(i+1) * 1e7)
			sent := time.Duration(float64(at)*spread) + late
			o.Samples = append(o.Samples, Sample{Due: at, Sent: sent, First: sent, Last: sent, Events: 1, Output: 1})
		}
		o.Client = Usage{Wall: time.Second, Processor: time.Second / 10, Cores: 2}
		return o
	}
	f("", Load{Rate: 100}, even(0, 1))
	f("the client was late", Load{Rate: 100}, even(12*time.Millisecond, 1))
	f("were sent of the 100/s", Load{Rate: 100}, even(0, 1.1))
	busy := even(0, 1)
	busy.Client.Processor = 1900 * time.Millisecond
	f("of its 2 cores", Load{Rate: 100}, busy)
	wrong := even(0, 1)
	wrong.Samples[3].Wrong = true
	f("1 answers are not the right ones", Load{Rate: 100}, wrong)
	none := even(0, 1)
	for i := range none.Samples {
		none.Samples[i].Err = "status 500: no"
	}
	f("no request came to its end; the first: status 500: no", Load{Rate: 100}, none)
}
