package profile

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"time"
)

// The tracks of a trace.
const (
	trackSteps = 1
	trackHost  = 2
	trackFirst = 10 // thread 0 of the kernels
)

// event is one of Chrome's trace events. Times are microseconds.
type event struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"`
	At    float64        `json:"ts"`
	Took  float64        `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Args  map[string]any `json:"args,omitempty"`
}

// tracer writes events.
type tracer struct {
	out   *json.Encoder
	text  *gzip.Writer
	zero  time.Time
	comma string
}

func (t *tracer) write(e event) {
	e.PID = 1
	_, _ = t.text.Write([]byte(t.comma)) // to memory
	t.comma = ","
	_ = t.out.Encode(e)
}

func (t *tracer) name(track int, name string) {
	t.write(event{Name: "thread_name", Phase: "M", TID: track, Args: map[string]any{"name": name}})
	t.write(event{Name: "thread_sort_index", Phase: "M", TID: track, Args: map[string]any{"sort_index": track}})
}

func (t *tracer) at(when time.Time) float64 { return float64(when.Sub(t.zero).Nanoseconds()) / 1000 }

func (t *tracer) span(track int, name string, from, to time.Time, args map[string]any) {
	t.write(event{Name: name, Phase: "X", At: t.at(from), Took: max(0.001, t.at(to)-t.at(from)), TID: track, Args: args})
}

// trace is the steps as a Chrome trace, compressed: Perfetto and chrome://tracing open it.
func (s *steps) trace() []byte {
	var b bytes.Buffer
	text := gzip.NewWriter(&b)
	t := &tracer{out: json.NewEncoder(text), text: text}
	if len(s.list) > 0 {
		t.zero = s.list[0].Planned
	}
	_, _ = text.Write([]byte(`{"displayTimeUnit":"ms","traceEvents":[`))
	t.write(event{Name: "process_name", Phase: "M", Args: map[string]any{"name": "roundhouse-worker"}})
	t.name(trackSteps, "steps")
	t.name(trackHost, "scheduler")
	for i := range s.threads {
		t.name(trackFirst+i, fmt.Sprintf("kernels, thread %d", i))
	}
	for i := range s.list {
		w := &s.list[i]
		t.span(trackSteps, "step", w.Began, w.Ended, map[string]any{
			"tokens": w.Tokens, "prompts": w.Prompts, "decodes": w.Decodes, "running": w.Running, "waiting": w.Waiting, "preempted": w.Preempted, "kv": w.Usage,
		})
		t.span(trackHost, "schedule", w.Planned, w.Began, nil)
		t.span(trackHost, "hand out", w.Ended, w.Committed, nil)
		t.write(event{Name: "requests", Phase: "C", At: t.at(w.Began), Args: map[string]any{"running": w.Running, "waiting": w.Waiting}})
		for _, span := range w.Spans {
			t.span(trackFirst+span.Thread, span.Op, span.Began, span.Ended, nil)
		}
	}
	_, _ = text.Write([]byte("]}\n"))
	_ = text.Close()
	return b.Bytes()
}
