package metrics

import (
	"math"
	"testing"
)

func TestFloat(t *testing.T) {
	f := func(v float64, want string) {
		t.Helper()
		if got := Float(v); got != want {
			t.Errorf("got %s; want %s", got, want)
		}
	}
	f(0, "0.0")
	f(1, "1.0")
	f(-3, "-3.0")
	f(0.1, "0.1")
	f(1e15, "1000000000000000.0")
	f(1e16, "1e+16")
	f(0.0001, "0.0001")
	f(0.00001, "1e-05")
	f(123456789.25, "123456789.25")
	f(math.Inf(1), "+Inf")
	f(math.Inf(-1), "-Inf")
	f(math.NaN(), "NaN")
}

func TestText(t *testing.T) {
	h := NewHistogram([]float64{1, 2})
	for _, v := range []float64{0.5, 1, 1.5, 9} {
		h.Observe(v)
	}
	var x Text
	x.Counter("a", "line\none", []Label{{"k", "a\"b\\c\nd"}}, 2)
	x.Histogram("h", "of two", nil, h.Clone())
	want := "# HELP a_total line\\none\n# TYPE a_total counter\na_total{k=\"a\\\"b\\\\c\\nd\"} 2.0\n" +
		"# HELP h of two\n# TYPE h histogram\nh_bucket{le=\"1.0\"} 2.0\nh_bucket{le=\"2.0\"} 3.0\nh_bucket{le=\"+Inf\"} 4.0\nh_count 4.0\nh_sum 12.0\n"
	if got := string(x.Bytes()); got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
}
