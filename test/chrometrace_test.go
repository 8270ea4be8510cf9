package test

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// chromeEvent is an event of Chrome's trace format.
type chromeEvent struct {
	Name  *string        `json:"name"`
	Phase string         `json:"ph"`
	At    *float64       `json:"ts"`
	Took  float64        `json:"dur"`
	PID   *int           `json:"pid"`
	TID   *int           `json:"tid"`
	Args  map[string]any `json:"args"`
}

// opens fails the test unless a compressed trace keeps the rules of Chrome's trace format
// without which Perfetto refuses it or leaves events out: one JSON object, events of known
// phases with a time, names and numbers where these belong, and spans of a track that lie
// inside each other or apart. It returns how many spans have each name.
func opens(t *testing.T, path string) map[string]int {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var trace struct {
		Unit   string        `json:"displayTimeUnit"`
		Events []chromeEvent `json:"traceEvents"`
	}
	if err := json.NewDecoder(text).Decode(&trace); err != nil || trace.Unit != "ms" && trace.Unit != "ns" {
		t.Fatalf("unit %q: %v", trace.Unit, err)
	}
	names, tracks, named := map[string]int{}, map[int][]chromeEvent{}, map[int]bool{}
	for _, e := range trace.Events {
		if e.Name == nil || *e.Name == "" || e.At == nil || *e.At < 0 || e.PID == nil || e.TID == nil {
			t.Fatalf("an event lacks its name, time or track: %+v", e)
		}
		switch e.Phase {
		case "X":
			if e.Took <= 0 {
				t.Errorf("%s takes %v µs", *e.Name, e.Took)
			}
			names[*e.Name]++
			tracks[*e.TID] = append(tracks[*e.TID], e)
		case "C":
			for k, v := range e.Args {
				if _, ok := v.(float64); !ok {
					t.Errorf("the counter %s has %s = %v", *e.Name, k, v)
				}
			}
		case "M":
			if name, ok := e.Args["name"].(string); *e.Name == "thread_name" && ok && name != "" {
				named[*e.TID] = true
			}
		default:
			t.Errorf("an event of phase %q", e.Phase)
		}
	}
	for id, spans := range tracks {
		if !named[id] {
			t.Errorf("track %d has no name", id)
		}
		apart(t, id, spans)
	}
	return names
}

// apart fails the test if a span of a track begins within another one and ends after it.
func apart(t *testing.T, track int, spans []chromeEvent) {
	t.Helper()
	const rounding = 0.002 // µs
	slices.SortStableFunc(spans, func(a, b chromeEvent) int {
		if *a.At != *b.At {
			return map[bool]int{true: -1, false: 1}[*a.At < *b.At]
		}
		return map[bool]int{true: -1, false: 1}[a.Took > b.Took]
	})
	var open []chromeEvent
	for _, e := range spans {
		for len(open) > 0 && *open[len(open)-1].At+open[len(open)-1].Took <= *e.At+rounding {
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			if o := open[len(open)-1]; *e.At+e.Took > *o.At+o.Took+rounding {
				t.Fatalf("track %d: %s (%.3f + %.3f) crosses the end of %s (%.3f + %.3f)", track, *e.Name, *e.At, e.Took, *o.Name, *o.At, o.Took)
			}
		}
		open = append(open, e)
	}
}
