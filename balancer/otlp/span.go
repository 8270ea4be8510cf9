package otlp

import (
	"encoding/hex"
	"strconv"
	"time"
)

// Kind is OTLP's kind of a span.
type Kind int

// The kinds that a door makes.
const (
	Server Kind = 2
	Client Kind = 3
)

// Span is one piece of work that has ended.
type Span struct {
	Context
	Parent     [8]byte // zero: it is the first of its trace
	State      string  // the tracestate that came with it
	Name       string
	Kind       Kind
	Start, End time.Time
	Attributes []Attribute
	Error      string // why it failed; empty: it did not
}

// Attribute is one fact about a span.
type Attribute struct {
	Key   string
	value any
}

// Text is an attribute in words; an empty one is left out.
func Text(key, value string) Attribute { return Attribute{key, value} }

// Int is a whole number.
func Int(key string, value int64) Attribute { return Attribute{key, value} }

// Seconds is a time in seconds.
func Seconds(key string, value float64) Attribute { return Attribute{key, value} }

// The JSON of OTLP: 64-bit numbers are strings in it, ids hexadecimal.
type (
	wireRequest struct {
		ResourceSpans []wireResource `json:"resourceSpans"`
	}

	wireResource struct {
		Resource   wireAttributes `json:"resource"`
		ScopeSpans []wireScope    `json:"scopeSpans"`
	}

	wireAttributes struct {
		Attributes []wireAttribute `json:"attributes"`
	}

	wireScope struct {
		Scope wireName   `json:"scope"`
		Spans []wireSpan `json:"spans"`
	}

	wireName struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}

	wireSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		ParentID   string          `json:"parentSpanId,omitempty"`
		State      string          `json:"traceState,omitempty"`
		Name       string          `json:"name"`
		Kind       Kind            `json:"kind"`
		Start      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []wireAttribute `json:"attributes"`
		Status     *wireStatus     `json:"status,omitempty"`
	}

	wireStatus struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}

	wireAttribute struct {
		Key   string    `json:"key"`
		Value wireValue `json:"value"`
	}

	wireValue struct {
		Text   *string  `json:"stringValue,omitempty"`
		Int    *string  `json:"intValue,omitempty"`
		Double *float64 `json:"doubleValue,omitempty"`
	}
)

// statusError is OTLP's code of a span that failed.
const statusError = 2

func (s *Span) wire() wireSpan {
	w := wireSpan{
		TraceID: hex.EncodeToString(s.Trace[:]), SpanID: hex.EncodeToString(s.Span[:]), State: s.State, Name: s.Name, Kind: s.Kind,
		Start: strconv.FormatInt(s.Start.UnixNano(), 10), End: strconv.FormatInt(s.End.UnixNano(), 10), Attributes: wireOf(s.Attributes),
	}
	if s.Parent != [8]byte{} {
		w.ParentID = hex.EncodeToString(s.Parent[:])
	}
	if s.Error != "" {
		w.Status = &wireStatus{statusError, s.Error}
	}
	return w
}

func wireOf(all []Attribute) []wireAttribute {
	out := []wireAttribute{}
	for _, a := range all {
		var v wireValue
		switch x := a.value.(type) {
		case string:
			if x == "" {
				continue
			}
			v.Text = &x
		case int64:
			n := strconv.FormatInt(x, 10)
			v.Int = &n
		case float64:
			v.Double = &x
		}
		out = append(out, wireAttribute{a.Key, v})
	}
	return out
}
