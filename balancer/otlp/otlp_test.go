package otlp

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func TestParse(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	f := func(in string, ok, sampled bool) {
		t.Helper()
		c, got := Parse([]byte(in))
		if got != ok || c.Sampled != sampled {
			t.Errorf("%q: %v, sampled %v; want %v, %v", in, got, c.Sampled, ok, sampled)
		}
		if ok && len(in) == 55 && string(c.Append(nil)) != in {
			t.Errorf("%q became %q", in, c.Append(nil))
		}
	}
	f(good, true, true)
	f(good[:54]+"0", true, false)
	f("01"+good[2:]+"-more", true, true)
	f(good+"-more", false, false)
	f("01"+good[2:]+"more", false, false)
	f("ff"+good[2:], false, false)
	f("00-00000000000000000000000000000000-b7ad6b7169203331-01", false, false)
	f("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false, false)
	f("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", false, false)
	f(good[:54], false, false)
	f("", false, false)
	if a, b := New(), New(); a.Trace == b.Trace || !a.Sampled || a.Child().Trace != a.Trace || a.Child().Span == a.Span {
		t.Errorf("new contexts are %+v and %+v", a, b)
	}
}

// TestExporter sends spans to a collector and reads what it got.
func TestExporter(t *testing.T) {
	got := make(chan []byte, 8)
	c := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %v %v", r.URL.Path, r.Header, err)
		}
		got <- b
	}))
	defer c.Close()
	e := Open(c.URL+"/", "1.2", []Attribute{Text("service.name", "roundhouse")}, quiet)
	at := time.Unix(100, 5)
	e.Take(Span{Context: New(), Name: "chat m", Kind: Server, Start: at, End: at.Add(time.Second), Error: "failed",
		Attributes: []Attribute{Int("n", 1<<53+1), Text("empty", ""), Seconds("s", 0.5)}})
	unsampled := New()
	unsampled.Sampled = false
	e.Take(Span{Context: unsampled, Name: "not recorded"})
	e.Close()
	var r struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes []map[string]any }
			ScopeSpans []struct{ Spans []map[string]any }
		}
	}
	if err := json.Unmarshal(<-got, &r); err != nil {
		t.Fatal(err)
	}
	spans := r.ResourceSpans[0].ScopeSpans[0].Spans
	if len(spans) != 1 || spans[0]["name"] != "chat m" || spans[0]["startTimeUnixNano"] != "100000000005" || spans[0]["kind"] != 2.0 || spans[0]["parentSpanId"] != nil {
		t.Errorf("spans are %v", spans)
	}
	attributes, err := json.Marshal(spans[0]["attributes"])
	if want := `[{"key":"n","value":{"intValue":"9007199254740993"}},{"key":"s","value":{"doubleValue":0.5}}]`; err != nil || string(attributes) != want {
		t.Errorf("attributes are %s; want %s", attributes, want)
	}
	if e.Dropped() != 0 {
		t.Errorf("%d were dropped", e.Dropped())
	}
}

// TestCollectorHangs hands over more spans than fit while nobody takes them:
// none of it waits.
func TestCollectorHangs(t *testing.T) {
	release := make(chan struct{})
	c := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer c.Close()
	e := Open(c.URL, "", nil, quiet)
	const spans = 3 * mostQueued
	for range spans {
		e.Take(Span{Context: New()})
	}
	if e.Dropped() == 0 {
		t.Error("a queue of its size took three times as many")
	}
	close(release)
	e.Close()
	var none *Exporter
	none.Take(Span{Context: New()})
	none.Close()
}
