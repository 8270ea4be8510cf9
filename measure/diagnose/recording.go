package diagnose

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Recording is what metrics said at some moments, the oldest first.
type Recording struct {
	Times  []time.Time
	byName map[string][]*series
	index  map[string]*series // by name and labels as they stood
}

// series is one metric under one set of labels.
type series struct {
	labels map[string]string
	values []float64 // at each time; NaN: not said
}

// Labels picks series: those that have all of these.
type Labels map[string]string

// Add takes what an exposition said at a moment after all others. Lines that are no
// samples are passed over: one worker's odd line hides no other's figures.
func (r *Recording) Add(at time.Time, exposition string) {
	r.Times = append(r.Times, at)
	for line := range strings.Lines(exposition) {
		if name, labels, value, ok := sample(strings.TrimSpace(line)); ok && Wanted(name) {
			s := r.at(name, labels)
			s.values = append(filled(s.values, len(r.Times)-1), value)
		}
	}
}

// Put takes values of one series at moments of the recording, as Prometheus gives
// them; the recording's Times must hold all of its moments before. A metric of an
// engine that no door has named is that of its instance.
func (r *Recording) Put(name string, labels map[string]string, at []time.Time, values []float64) {
	if labels["worker"] == "" && labels["instance"] != "" && strings.HasPrefix(name, "vllm:") {
		labels = maps.Clone(labels)
		labels["worker"] = labels["instance"]
	}
	s := r.put(name, labels)
	s.values = filled(s.values, len(r.Times))
	for i, t := range at {
		if k, found := slices.BinarySearchFunc(r.Times, t, time.Time.Compare); found {
			s.values[k] = values[i]
		}
	}
}

// at is the series of a name and of labels as they stand in an exposition.
func (r *Recording) at(name, labels string) *series {
	key := name + "{" + labels
	if s := r.index[key]; s != nil {
		return s
	}
	s := r.put(name, parseLabels(labels))
	if r.index == nil {
		r.index = map[string]*series{}
	}
	r.index[key] = s
	return s
}

func (r *Recording) put(name string, labels map[string]string) *series {
	for _, s := range r.byName[name] {
		if maps.Equal(s.labels, labels) {
			return s
		}
	}
	if r.byName == nil {
		r.byName = map[string][]*series{}
	}
	s := &series{labels: labels}
	r.byName[name] = append(r.byName[name], s)
	return s
}

// filled returns values with as many more as make n of them, not said.
func filled(values []float64, n int) []float64 {
	for len(values) < n {
		values = append(values, math.NaN())
	}
	return values[:n]
}

// Span is the time from the first moment to the last.
func (r *Recording) Span() time.Duration {
	if len(r.Times) < 2 {
		return 0
	}
	return r.Times[len(r.Times)-1].Sub(r.Times[0])
}

// Trim forgets what was said longer ago than the given time before the last moment, and
// series that nobody has told of since.
func (r *Recording) Trim(span time.Duration) {
	from := 0
	for from < len(r.Times) && r.Times[len(r.Times)-1].Sub(r.Times[from]) > span {
		from++
	}
	if from == 0 {
		return
	}
	r.Times = slices.Clone(r.Times[from:])
	gone := func(s *series) bool { return len(known(s.values)) == 0 }
	for name, all := range r.byName {
		for _, s := range all {
			s.values = slices.Clone(s.values[min(from, len(s.values)):])
		}
		r.byName[name] = slices.DeleteFunc(all, gone)
	}
	maps.DeleteFunc(r.index, func(_ string, s *series) bool { return gone(s) })
}

// Last is the end of a recording, of so long.
func (r *Recording) Last(span time.Duration) *Recording {
	from := len(r.Times)
	for from > 0 && r.Times[len(r.Times)-1].Sub(r.Times[from-1]) <= span {
		from--
	}
	return r.between(from, len(r.Times))
}

// Workers are those that a recording tells of, as pool/name.
func (r *Recording) Workers() (ids []string) {
	v := evidence{Recording: r}
	v.meet()
	for _, w := range v.workers {
		ids = append(ids, w.id)
	}
	return ids
}

// Newest is the last value that the series of a name have together, NaN of none.
func (r *Recording) Newest(name string, want Labels) float64 { return last(r.Gauge(name, want)) }

// between is the part of a recording from one moment to before another, by their numbers.
func (r *Recording) between(from, until int) *Recording {
	out := &Recording{Times: r.Times[from:until], byName: map[string][]*series{}}
	for name, all := range r.byName {
		for _, s := range all {
			if values := filled(slices.Clone(s.values), len(r.Times)); len(values) > 0 {
				out.byName[name] = append(out.byName[name], &series{labels: s.labels, values: values[from:until]})
			}
		}
	}
	return out
}

// find returns the series of a name that have all of the labels.
func (r *Recording) find(name string, want Labels) []*series {
	var out []*series
next:
	for _, s := range r.byName[name] {
		for k, v := range want {
			if s.labels[k] != v {
				continue next
			}
		}
		out = append(out, s)
	}
	return out
}

// Gauge is the sum of the series of a name at each moment, NaN where none was said.
func (r *Recording) Gauge(name string, want Labels) []float64 {
	out := filled(nil, len(r.Times))
	for _, s := range r.find(name, want) {
		for i, v := range s.values {
			if math.IsNaN(v) {
				continue
			}
			if math.IsNaN(out[i]) {
				out[i] = 0
			}
			out[i] += v
		}
	}
	return out
}

// Growth is by how much the counters of a name grew between moment and moment, the
// first of which has no value. A counter that fell has begun anew at 0. One of
// Roundhouse's own that appears has grown from 0, for its labels are made by what it
// counts; an engine's that appears was out of reach before.
func (r *Recording) Growth(name string, want Labels) []float64 {
	out := filled(nil, len(r.Times))
	for _, s := range r.find(name, want) {
		before := math.NaN()
		if strings.HasPrefix(name, "roundhouse_") && len(s.values) > 0 && math.IsNaN(s.values[0]) {
			before = 0
		}
		for i, v := range s.values {
			if math.IsNaN(v) {
				continue
			}
			switch {
			case math.IsNaN(before):
			case v < before:
				out[i] = v + zeroed(out[i])
			default:
				out[i] = v - before + zeroed(out[i])
			}
			before = v
		}
	}
	return out
}

// Grew is the growth of the counters over the recording, NaN where there are none.
func (r *Recording) Grew(name string, want Labels) float64 { return total(r.Growth(name, want)) }

// Distribution is what a histogram counted over the recording.
type Distribution struct {
	Bounds []float64 // upper ones, the last is +Inf
	Counts []float64 // in each bucket alone
	Sum, N float64
}

// Histogram is what the histograms of a name counted together over the recording.
func (r *Recording) Histogram(name string, want Labels) Distribution {
	by := map[float64]float64{}
	for _, s := range r.find(name+"_bucket", want) {
		bound, err := strconv.ParseFloat(s.labels["le"], 64)
		if err != nil {
			continue
		}
		one := &Recording{Times: r.Times, byName: map[string][]*series{name: {s}}}
		by[bound] += zeroed(one.Grew(name, nil))
	}
	d := Distribution{Sum: zeroed(r.Grew(name+"_sum", want)), N: zeroed(r.Grew(name+"_count", want))}
	before := 0.0
	for _, bound := range slices.Sorted(maps.Keys(by)) {
		d.Bounds, d.Counts = append(d.Bounds, bound), append(d.Counts, by[bound]-before)
		before = by[bound]
	}
	return d
}

// Mean is the mean of what was counted, NaN of nothing.
func (d Distribution) Mean() float64 { return d.Sum / d.N }

// Quantile is the q-quantile (0 to 1), interpolated within its bucket; NaN of nothing.
// In the last bucket it is that bucket's lower bound.
func (d Distribution) Quantile(q float64) float64 {
	all := 0.0
	for _, c := range d.Counts {
		all += c
	}
	if all == 0 {
		return math.NaN()
	}
	low, left := 0.0, q*all
	for i, c := range d.Counts {
		if left <= c && c > 0 {
			if math.IsInf(d.Bounds[i], 1) {
				return low
			}
			return low + (d.Bounds[i]-low)*left/c
		}
		left -= c
		low = d.Bounds[i]
	}
	return low
}

// sample takes one line of an exposition apart.
func sample(line string) (name, labels string, value float64, ok bool) {
	if line == "" || line[0] == '#' {
		return "", "", 0, false
	}
	var rest string
	if open := strings.IndexByte(line, '{'); open >= 0 {
		end := strings.LastIndexByte(line, '}')
		if end < open {
			return "", "", 0, false
		}
		name, labels, rest = line[:open], line[open+1:end], line[end+1:]
	} else {
		name, rest, _ = strings.Cut(line, " ")
	}
	fields := strings.Fields(rest) // a value, and perhaps a time
	if len(fields) == 0 {
		return "", "", 0, false
	}
	value, err := strconv.ParseFloat(fields[0], 64)
	return name, labels, value, err == nil
}

// parseLabels reads labels as they stand in an exposition; what is malformed ends them.
func parseLabels(text string) map[string]string {
	out := map[string]string{}
	for {
		name, rest, found := strings.Cut(text, `="`)
		if !found {
			return out
		}
		end := 0
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(rest) {
			return out
		}
		value, err := strconv.Unquote(`"` + rest[:end] + `"`)
		if err != nil {
			value = rest[:end]
		}
		out[strings.TrimSpace(name)] = value
		text = strings.TrimPrefix(rest[end+1:], ",")
	}
}

func zeroed(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// known returns the values that were said.
func known(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), math.IsNaN)
}

// total is the sum of the values that were said, NaN of none.
func total(values []float64) float64 {
	sum := math.NaN()
	for _, v := range values {
		if !math.IsNaN(v) {
			sum = v + zeroed(sum)
		}
	}
	return sum
}
