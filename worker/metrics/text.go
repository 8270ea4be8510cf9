package metrics

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// ContentType is that of the text format.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Label is one name and value of a sample.
type Label struct{ Name, Value string }

// Text is an exposition in the making.
type Text struct{ buf bytes.Buffer }

// Bytes is what was written so far.
func (t *Text) Bytes() []byte { return t.buf.Bytes() }

// Family begins a metric: its help and type lines.
func (t *Text) Family(name, kind, help string) {
	t.buf.WriteString("# HELP " + name + " " + escape(help, false) + "\n# TYPE " + name + " " + kind + "\n")
}

// Sample writes one line.
func (t *Text) Sample(name string, labels []Label, value float64) {
	t.buf.WriteString(name)
	if len(labels) > 0 {
		t.buf.WriteByte('{')
		for i, l := range labels {
			if i > 0 {
				t.buf.WriteByte(',')
			}
			t.buf.WriteString(l.Name + `="` + escape(l.Value, true) + `"`)
		}
		t.buf.WriteByte('}')
	}
	t.buf.WriteString(" " + Float(value) + "\n")
}

// Gauge writes a family with one sample.
func (t *Text) Gauge(name, help string, labels []Label, value float64) {
	t.Family(name, "gauge", help)
	t.Sample(name, labels, value)
}

// Counter writes a family with one sample, whose name ends in _total.
func (t *Text) Counter(name, help string, labels []Label, value float64) {
	t.Family(name+"_total", "counter", help)
	t.Sample(name+"_total", labels, value)
}

// Histogram writes a family with one histogram.
func (t *Text) Histogram(name, help string, labels []Label, h *Histogram) {
	t.Family(name, "histogram", help)
	t.Buckets(name, labels, h)
}

// Buckets writes the lines of one histogram of a family.
func (t *Text) Buckets(name string, labels []Label, h *Histogram) {
	with := append(append([]Label{}, labels...), Label{Name: "le"})
	n := uint64(0)
	for i, c := range h.Counts {
		n += c
		bound := math.Inf(1)
		if i < len(h.Bounds) {
			bound = h.Bounds[i]
		}
		with[len(with)-1].Value = Float(bound)
		t.Sample(name+"_bucket", with, float64(n))
	}
	t.Sample(name+"_count", labels, float64(n))
	t.Sample(name+"_sum", labels, h.Sum)
}

func escape(s string, quotes bool) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), "\n", `\n`)
	if quotes {
		s = strings.ReplaceAll(s, `"`, `\"`)
	}
	return s
}

// Float prints v as Python's repr does, and infinities as Prometheus does.
func Float(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	case math.IsNaN(v):
		return "NaN"
	}
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e16) {
		s := strconv.FormatFloat(v, 'e', -1, 64)
		return s
	}
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
