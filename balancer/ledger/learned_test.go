package ledger

import (
	"math"
	"reflect"
	"testing"
)

// TestLengths hands what was learned of the work of prompts to another ledger, which
// then counts them alike; one that has learned by itself keeps that.
func TestLengths(t *testing.T) {
	l, g, _ := fleet(1, 1<<20)
	if got := l.Lengths(g); got != nil {
		t.Errorf("nothing was learned, and there is %v", got)
	}
	for range 64 {
		for n := int64(200); n < 20_000; n *= 2 {
			g.curve.learn(n, 1e-4*float64(n)+1e-8*float64(n*n))
		}
	}
	all := l.Lengths(g)
	if len(all) != 7 || g.curve.work(16_000, 0) < 20_000 {
		t.Fatalf("%d classes are learned, and 16,000 tokens are as much work as %d: %v", len(all), g.curve.work(16_000, 0), all)
	}
	other, its, _ := fleet(1, 1<<20)
	other.TakeLengths(its, all)
	for _, n := range []int64{100, 3000, 16_000} {
		if got, want := its.curve.work(n, 0), g.curve.work(n, 0); got != want {
			t.Errorf("%d tokens are as much work as %d to one, %d to the other", n, want, got)
		}
	}
	if got := other.Lengths(its); !reflect.DeepEqual(got, all) {
		t.Errorf("handed over were %v, there are %v", all, got)
	}
	before := its.curve
	other.TakeLengths(its, []Length{{400, 5, 9}})
	if its.curve != before {
		t.Error("what was learned is replaced by what another has")
	}
	third, empty, _ := fleet(1, 1<<20)
	third.TakeLengths(empty, []Length{{-1, 1, 1}, {400, 0, 1}, {400, math.Inf(1), 1}, {math.NaN(), 1, 1}, {400, 1, 0}, {1e300, 1, 1}})
	if got := third.Lengths(empty); got != nil || empty.curve.bend != 0 {
		t.Errorf("nonsense is taken for %v", got)
	}
}

// TestRatesTakenOver takes rates over that nobody can have measured: what they
// predict is a number all the same.
func TestRatesTakenOver(t *testing.T) {
	for _, rate := range []float64{1.829992194162123e-308, math.Inf(1), math.NaN(), -1, 0, 1e-6} {
		l, g, ws := fleet(2, 50_000)
		l.SetRates(ws[0], Rates{Prefill: rate, Decode: rate, TTFT: rate})
		for i, wait := range l.Predicted(nil, g, &Ask{Prompt: 1000, Now: 10}) {
			if math.IsNaN(wait) || math.IsInf(wait, 0) || wait < 0 {
				t.Errorf("with a rate of %g, the first token of worker %d comes after %g s", rate, i, wait)
			}
		}
	}
}

// TestMediaSpoilsNothing learns what pictures take beside the text, and what a token
// of text is from prompts of text alone.
func TestMediaSpoilsNothing(t *testing.T) {
	var l Learned
	for range 100 {
		l.Learn(Size{Text: 4000}, 1000, 10)
		l.Learn(Size{Text: 400, Media: 2}, 700, 10)
		l.Learn(Size{Text: 400, Pixels: 100 * usualPixels}, 150, 10)
		l.Learn(Size{IDs: 5000}, 5000, 10)
		l.Learn(Size{Text: 4000, Media: 1}, 3, 10)
	}
	f := func(s Size, want int64) {
		t.Helper()
		if got, _ := l.Estimate(s, 0); got < want || got > want+2 {
			t.Errorf("%+v are %d tokens, want %d", s, got, want)
		}
	}
	f(Size{Text: 4000}, 1000)
	f(Size{Media: 2}, 600)
	f(Size{Pixels: 1000 * usualPixels}, 500)
	f(Size{Pixels: 1000 * usualPixels, Media: 1}, 800)
	f(Size{IDs: 123}, 123)
	f(Size{Text: 400, Media: 4, IDs: 5}, 1305)
}
