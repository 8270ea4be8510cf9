package history

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

var load = Key{Pool: "chat", Name: "tokens_per_second"}

// fill adds one figure a step from a time on.
func fill(s *Store, k Key, from time.Time, n int, f func(i int) float64) time.Time {
	for i := range n {
		s.Add(from.Add(time.Duration(i)*Step), map[Key]float64{k: f(i)})
	}
	return from.Add(time.Duration(n) * Step)
}

func near(a, b float64) bool { return a == b || math.Abs(a-b) <= 0.006*math.Abs(b) }

// TestCode: figures come back to three digits, from microseconds to terabytes, and what
// is not known is not zero.
func TestCode(t *testing.T) {
	for _, v := range []float64{0, 1e-4, 0.62, 1, 3, 7, 42, 999, 114432, 24e9, 3.2e12} {
		if got := encode(v).decode(); !near(got, v) {
			t.Errorf("%v comes back as %v", v, got)
		}
	}
	for v := 1.0; v <= 300; v++ { // what is counted stays whole
		if got := encode(v).decode(); got != v {
			t.Errorf("%v comes back as %v", v, got)
		}
	}
	if !math.IsNaN(encode(math.NaN()).decode()) {
		t.Error("unknown comes back as a figure")
	}
	if got := encode(math.Inf(1)).decode(); math.IsNaN(got) || got < 1e13 {
		t.Errorf("what is beyond all bounds comes back as %v", got)
	}
}

// TestWindows: a range has at most as many parts as are wanted, of whole steps, and ends
// now.
func TestWindows(t *testing.T) {
	now := noon.Add(1234 * time.Millisecond)
	for _, back := range []time.Duration{time.Second, 15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour, 365 * 24 * time.Hour} {
		for _, most := range []int{1, 7, 360, 2000} {
			w := WindowOf(now, back, most)
			if w.N > most || w.N < 1 || w.Step%Step != 0 || w.From.Unix()%5 != 0 {
				t.Errorf("%v in %d: %+v", back, most, w)
			}
			if end := w.From.Add(time.Duration(w.N) * w.Step); end.After(now) || now.Sub(end) > time.Minute {
				t.Errorf("%v in %d ends at %v", back, most, end)
			}
		}
	}
}

// TestRead: parts are means of what was known, holes stay holes, and days are there when
// seconds are not any more.
func TestRead(t *testing.T) {
	s := New(Budget)
	end := fill(s, load, noon, 720, func(i int) float64 {
		if i >= 360 && i < 480 {
			return math.NaN()
		}
		return float64(100 + i%2*100)
	})
	values, begins := s.Read(load, WindowOf(end, time.Hour, 720))
	if !begins.Equal(noon) || len(values) != 720 || values[0] != 100 || values[1] != 200 || !math.IsNaN(values[360]) || !math.IsNaN(values[479]) || math.IsNaN(values[480]) {
		t.Fatalf("since %v: %v…", begins, values[:3])
	}
	values, _ = s.Read(load, WindowOf(end, time.Hour, 60))
	if len(values) != 60 || values[0] != 150 || !math.IsNaN(values[35]) {
		t.Errorf("by minutes: %v", values)
	}
	end = fill(s, load, end.Add(time.Hour), 12, func(int) float64 { return 7 }) // it was away
	if values, _ = s.Read(load, WindowOf(end, 62*time.Minute, 31)); !math.IsNaN(values[15]) || values[30] != 7 {
		t.Errorf("after a pause: %v", values)
	}
	if values, _ = s.Read(Key{Pool: "none"}, WindowOf(end, time.Minute, 12)); !math.IsNaN(values[0]) {
		t.Errorf("of a series that is not there: %v", values)
	}
	if s.Add(end.Add(-time.Minute), map[Key]float64{load: 1e6}); s.series[load].fine.at(indexOf(end.Add(-time.Minute))).decode() == 1e6 {
		t.Error("a clock that was set back writes over what was")
	}
}

// TestMonth: 24 h stay by 5 s and 30 days by a minute, and no more.
func TestMonth(t *testing.T) {
	s := New(Budget)
	day := 24 * 720
	end := fill(s, load, noon, 32*day, func(i int) float64 { return float64(1 + i/day) })
	x := s.series[load]
	if n := x.fine.next - x.fine.first; n < fineKept || n > fineKept+2*blockPoints {
		t.Errorf("%d fine points are kept", n)
	}
	if n := x.coarse.next - x.coarse.first; n < coarse30 || n > coarse30+2*blockPoints {
		t.Errorf("%d coarse points are kept", n)
	}
	values, _ := s.Read(load, WindowOf(end, 30*24*time.Hour, 30))
	for i, v := range values {
		if want := float64(3 + i); !near(v, want) {
			t.Errorf("day %d is %v; want %v", i, v, want)
		}
	}
	if got := x.size() + seriesSize; got != s.Size() {
		t.Errorf("the store says that it takes %d bytes; its series take %d", s.Size(), got)
	}
}

// TestBudget: with a thousand workers the store stays within its bounds; the pools keep
// all, the workers their last hour at least, and it tells since when.
func TestBudget(t *testing.T) {
	const budget = 150 << 10
	s, r := New(budget), rand.New(rand.NewPCG(1, 2))
	pool := Key{Pool: "chat", Name: "kv_usage"}
	at, most := noon, 0
	for range 2 * 720 {
		figures := map[Key]float64{pool: r.Float64()}
		for w := range 50 {
			figures[Key{"chat", fmt.Sprintf("chat/%d", w), "kv_usage"}] = r.Float64()
		}
		s.Add(at, figures)
		most = max(most, s.Size())
		at = at.Add(Step)
	}
	if most > budget+50*(2*blockPoints*2+96) {
		t.Errorf("it grew to %d bytes", most)
	}
	w := WindowOf(at, 2*time.Hour, 1440)
	if values, begins := s.Read(pool, w); math.IsNaN(values[0]) || !begins.Equal(noon) {
		t.Errorf("the pool's begins at %v", begins)
	}
	_, begins := s.Read(Key{"chat", "chat/7", "kv_usage"}, w)
	if kept := at.Sub(begins); kept < time.Hour || kept > 100*time.Minute {
		t.Errorf("%v of a worker are kept", kept)
	}
	// Workers that are no more go first.
	for range 2*720 + 2*goneAfter {
		figures := map[Key]float64{}
		for w := range 50 {
			figures[Key{"chat", fmt.Sprintf("other/%d", w), "kv_usage"}] = r.Float64()
		}
		s.Add(at, figures)
		at = at.Add(Step)
	}
	if n := len(s.Keys(func(k Key) bool { return k.Worker == "chat/7" })); n != 0 {
		t.Error("a worker that is no more is kept")
	}
}
