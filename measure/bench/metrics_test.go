package bench

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
	"time"
)

// golden is testdata/metrics.json, made by metrics.py with vLLM's own client.
type golden struct {
	Duration float64
	Points   []float64
	Samples  []struct {
		Sent, TTFT     float64
		Gaps           []float64
		Prompt, Output int
		OK             bool
	}
	Figures map[string]float64
}

func readGolden(t *testing.T) (golden, []Sample) {
	t.Helper()
	text, err := os.ReadFile("testdata/metrics.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	seconds := func(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
	var samples []Sample
	for _, one := range g.Samples {
		s := Sample{Due: seconds(one.Sent), Sent: seconds(one.Sent), Prompt: one.Prompt, Output: one.Output, Events: 1}
		s.First = s.Sent + seconds(one.TTFT)
		s.Last = s.First
		for _, g := range one.Gaps {
			s.Gaps = append(s.Gaps, seconds(g))
			s.Last += seconds(g)
			s.Events++
		}
		s.End = s.Last
		if !one.OK {
			s.Err = "refused"
		}
		samples = append(samples, s)
	}
	return g, samples
}

// Every figure of a result file is the one that vLLM's client computes of the same
// samples, under the same name.
func TestFiguresAreVLLMs(t *testing.T) {
	g, samples := readGolden(t)
	goal := Goal{TTFT: 400, TPOT: 30, E2EL: 900}
	l := Measurement{Outcome: Outcome{Samples: samples}, Metrics: Measure(samples, time.Duration(g.Duration*1e9), goal, g.Points)}
	r := Result(Setup{Load: Load{Rate: math.Inf(1), Burstiness: 1}, Goal: goal, Metrics: []string{"ttft", "tpot", "itl", "e2el"}}, l, false)
	names := map[string]string{"total_input": "total_input_tokens", "total_output": "total_output_tokens"}
	for name, want := range g.Figures {
		if to, ok := names[name]; ok {
			name = to
		}
		var got float64
		switch v := r[name].(type) {
		case int:
			got = float64(v)
		case float64:
			got = v
		default:
			t.Errorf("%s is %v", name, r[name])
			continue
		}
		if math.Abs(got-want) > 1e-5*max(1, math.Abs(want)) {
			t.Errorf("%s is %g; vLLM has %g", name, got, want)
		}
	}
	if len(g.Figures) < 30 {
		t.Errorf("only %d figures were compared", len(g.Figures))
	}
}

// A script that reads vLLM's result file finds every key of it in ours.
func TestKeysAreVLLMs(t *testing.T) {
	text, err := os.ReadFile("testdata/keys.json")
	if err != nil {
		t.Fatal(err)
	}
	var keys struct{ Detailed []string }
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatal(err)
	}
	_, samples := readGolden(t)
	l := Measurement{Outcome: Outcome{Samples: samples}, Metrics: Measure(samples, time.Second, Goal{}, []float64{99})}
	r := Result(Setup{Load: Load{Rate: 3, Burstiness: 1}, Metrics: []string{"ttft", "tpot", "itl", "e2el"}}, l, true)
	for _, k := range keys.Detailed {
		if _, ok := r[k]; !ok {
			t.Errorf("the result file has no %q", k)
		}
	}
	for k := range r {
		if k != "roundhouse" && !slices.Contains(keys.Detailed, k) {
			t.Errorf("%q stands outside of \"roundhouse\", and vLLM's file has no such key", k)
		}
	}
}

// A request that waits behind a cap is late by its due time and by nothing else.
func TestDue(t *testing.T) {
	s := Sample{Due: time.Second, Sent: 4 * time.Second, First: 4100 * time.Millisecond, Last: 4200 * time.Millisecond, Output: 2, Events: 2}
	m := Measure([]Sample{s}, time.Second, Goal{E2EL: 300}, []float64{99})
	if m.TTFT.Mean != 100 || m.TTFTDue.Mean != 3100 || m.E2ELDue.Mean != 3200 || m.ClientQueue.Mean != 3000 {
		t.Errorf("ttft %g, from due %g, e2el from due %g, queue %g", m.TTFT.Mean, m.TTFTDue.Mean, m.E2ELDue.Mean, m.ClientQueue.Mean)
	}
	if m.Good != 1 || m.GoodDue != 0 {
		t.Errorf("%d good from sent and %d from due; want 1 and 0", m.Good, m.GoodDue)
	}
}
