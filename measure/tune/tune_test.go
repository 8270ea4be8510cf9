package tune

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Arithmetic throws out seats that the KV cache cannot hold and says why.
func TestSpace(t *testing.T) {
	f := func(facts Facts, most int, why bool) {
		t.Helper()
		all, refused := Space(facts)
		if all[0] != facts.Present {
			t.Errorf("the first is %v", all[0])
		}
		for _, s := range all[1:] {
			if s.Seqs > most || s.Seqs > s.Tokens || s.Seqs < 8 || s.Tokens < 512 || s.Tokens > 16_384 || s == facts.Present {
				t.Errorf("%v: %v", facts, s)
			}
		}
		if (len(refused) > 0) != why {
			t.Errorf("%v: refused %v", facts, refused)
		}
	}
	f(Facts{Settings{256, 2048}, 1_000_000, 500}, 1024, false)
	f(Facts{Settings{256, 2048}, 10_000, 500}, 20, true)
	f(Facts{Settings{1, 2048}, 100, 500}, 1, true) // nothing but what there is
	f(Facts{Settings{1, 2048}, 100, 0}, 1024, false)
}

// Halving finds the best of a space, having played most of it on an eighth of the
// traffic alone, and prefers fewer changes among equals.
func TestHalve(t *testing.T) {
	all, _ := Space(Facts{Settings{256, 2048}, 1_000_000, 500})
	plays, whole := 0.0, 0
	best := Halve(all, 3, func(s Settings, share float64) Score {
		plays += share
		if share == 1 {
			whole++
		}
		return Score{Goodput: 10 - math.Abs(math.Log2(float64(s.Seqs)/64)) - math.Abs(math.Log2(float64(s.Tokens)/4096))}
	})
	if len(best) != 3 || best[0].Settings != (Settings{64, 4096}) {
		t.Errorf("%+v", best)
	}
	if plays > float64(len(all))*0.6 || whole > len(all)/8+2 {
		t.Errorf("the traffic was played %g times, whole %d times, for %d settings", plays, whole, len(all))
	}
	best = Halve(all, 3, func(Settings, float64) Score { return Score{1, 1} })
	if best[0].Settings != all[0] {
		t.Errorf("of equals %v is preferred to what there is", best[0])
	}
	best = Halve(all, 2, func(s Settings, _ float64) Score { return Score{1, float64(s.Seqs)} })
	if best[0].Settings != (Settings{1024, 2048}) {
		t.Errorf("tokens a second and then fewer changes: %v", best[0])
	}
}

// Only what is surely better by 3 % is proposed; noise alone is not, in a thousand
// machines whose speed drifts by a third.
func TestJudge(t *testing.T) {
	f := func(name string, present, other []Score, want bool) {
		t.Helper()
		all, best := Judge([]Settings{{256, 2048}, {8, 2048}}, [][]Score{present, other})
		if (best == 1) != want || all[1].Proposed != want {
			t.Errorf("%s: %+v, best %d", name, all[1], best)
		}
	}
	s := func(v ...float64) (list []Score) {
		for i := 0; i+1 < len(v); i += 2 {
			list = append(list, Score{v[i], v[i+1]})
		}
		return list
	}
	f("twice as good", s(1, 10, 1.1, 11, 0.9, 9), s(2, 20, 2.2, 22, 1.8, 18), true)
	f("nothing was good", s(0, 10, 0, 11, 0, 9), s(2, 20, 2.2, 22, 1.8, 18), true)
	f("equal", s(1, 10, 1, 10, 1, 10), s(1, 10, 1, 10, 1, 10), false)
	f("2 % better", s(1, 10, 1, 10, 1, 10), s(1.02, 10, 1.02, 10, 1.02, 10), false)
	f("more tokens, as many good", s(1, 10, 1, 10, 1, 10), s(1, 12, 1, 12, 1, 12), true)
	f("more tokens, fewer good", s(1, 10, 1, 10, 1, 10), s(0.9, 12, 0.9, 12, 0.9, 12), false)
	f("more tokens, and goodput too noisy to tell", s(0.1, 10, 0.3, 11, 0.2, 9), s(0.3, 20, 9, 22, 4, 18), true)
	f("six times as good on a machine that somebody else uses, now more and now less", s(2.4, 20, 1.3, 11, 2.3, 26), s(7.5, 60, 13, 115, 20.5, 170), true)
	f("one round shows nothing", s(1, 10), s(2, 20), false)
	f("perhaps", s(1, 10, 1, 10, 1, 10), s(1, 10, 1.5, 15, 1, 10), false)

	rng, proposed, found := rand.New(rand.NewPCG(1, 2)), 0, 0
	for range 1000 {
		scores := make([][]Score, 3)
		for range 3 {
			drift := 1 + rng.Float64()/3 // of this round, for all
			for i := range scores {
				v := drift * (1 + 0.02*rng.NormFloat64())
				if i == 2 {
					v *= 1.2
				}
				scores[i] = append(scores[i], Score{v, 10 * v})
			}
		}
		all, best := Judge([]Settings{{1, 1}, {2, 2}, {3, 3}}, scores)
		if all[1].Proposed {
			proposed++
		}
		if best == 2 {
			found++
		}
	}
	t.Logf("of 1000: an equal one was proposed %d times, one that is 20 %% better %d times", proposed, found)
	if proposed > 25 || found < 800 {
		t.Error("too many false proposals, or too few right ones")
	}
}

// Settings are measured in turns, and an engine that does not start is named.
func TestTurns(t *testing.T) {
	var order []string
	scores, err := Turns([]Settings{{1, 1}, {2, 2}}, 3, func(round int, s Settings) (Score, error) {
		order = append(order, fmt.Sprint(round, s.Seqs))
		return Score{float64(s.Seqs), 0}, nil
	})
	if err != nil || !slices.Equal(order, []string{"0 1", "0 2", "1 1", "1 2", "2 1", "2 2"}) || len(scores[1]) != 3 || scores[1][2].Goodput != 2 {
		t.Errorf("%v %v %v", order, scores, err)
	}
	if _, err := Turns([]Settings{{1, 1}}, 1, func(int, Settings) (Score, error) { return Score{}, errors.New("out of memory") }); err == nil || err.Error() != "--max-num-seqs 1 --max-num-batched-tokens 1: out of memory" {
		t.Errorf("%v", err)
	}
}
