package canary

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/configs"
)

var began = time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)

func plan(change ...func(*configs.RouteCanary)) configs.RouteCanary {
	p := configs.RouteCanary{Model: "sql-2", Steps: []float64{0.05, 0.25, 0.5}, MinRequests: 100, Hold: configs.Duration(time.Minute), Promote: true}
	for _, f := range change {
		f(&p)
	}
	return p
}

// step moves a trial to a step, as evidence would.
func (t *Trial) step(n int, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.Step = n
	t.move(control.CanaryRunning, "", now)
}

// TestConversationsStay: a share that grows takes in conversations that begin and moves
// none that is under way; each step has its share; all doors find the same.
func TestConversationsStay(t *testing.T) {
	one, other := newTrial("r", plan(), nil, began), newTrial("r", plan(), nil, began)
	const n = 20_000
	where, now := map[string]bool{}, began
	for at, share := range one.plan.Steps {
		one.step(at, now)
		other.step(at, now)
		on := 0
		for i := range n {
			name := fmt.Sprint("step ", at, " conversation ", i)
			got := one.Choose(name, true, now)
			if other.Choose(name, true, now) != got {
				t.Fatalf("two doors part over %s", name)
			}
			if where[name] = got; got {
				on++
			}
		}
		if sigma := math.Sqrt(n * share * (1 - share)); math.Abs(float64(on)-n*share) > 4*sigma {
			t.Errorf("at a share of %g, %d of %d conversations are at the new model", share, on, n)
		}
		now = now.Add(time.Minute)
		for name, was := range where {
			if one.Choose(name, true, now) != was {
				t.Fatalf("%s has moved at step %d", name, at)
			}
		}
	}
	one.move(control.CanaryPromoted, "", now)
	for name, was := range where {
		if one.Choose(name, true, now) != was {
			t.Fatalf("%s has moved when the model was promoted", name)
		}
	}
	if !one.Choose("a new one", true, now) {
		t.Error("a conversation that begins once the model is promoted is not at it")
	}
	one.move(control.CanaryRolledBack, "", now)
	for name := range where {
		if one.Choose(name, true, now) {
			t.Fatalf("%s is at a model that was rolled back", name)
		}
	}
}

// TestTurns: requests that belong to no conversation are shared exactly; one that cannot be
// asked gets none, and no conversation comes to it later that began elsewhere.
func TestTurns(t *testing.T) {
	trial := newTrial("r", plan(), nil, began)
	for at, want := range []int{50, 250, 500} {
		trial.step(at, began)
		on := 0
		for range 1000 {
			if trial.Choose("", true, began) {
				on++
			}
		}
		if on != want {
			t.Errorf("step %d: %d of 1000 requests are at the new model; want %d", at, on, want)
		}
	}
	if trial.Choose("", false, began) {
		t.Error("a request is sent to a model that is not there")
	}
	for i := range 200 {
		name := fmt.Sprint(i)
		if trial.Choose(name, false, began) || trial.Choose(name, true, began) {
			t.Fatal("a conversation that began while the model was not there has moved")
		}
	}
}

// answers are requests of one kind: how often they fail, and how their answers are.
type answers struct {
	failed, refused     float64
	first, pace, tokens float64
}

var sound = answers{failed: 0.005, refused: 0.01, first: 0.4, pace: 40, tokens: 300}

// one is how a request ends.
func (a *answers) one(r *rand.Rand) Outcome {
	switch x := r.Float64(); {
	case x < a.failed:
		return Outcome{Failed: true}
	case x < a.failed+a.refused:
		return Outcome{Refused: true}
	}
	spread := func(mean float64) float64 { return mean * math.Exp(r.NormFloat64()*0.6-0.18) }
	return Outcome{First: spread(a.first), Pace: spread(a.pace), Tokens: spread(a.tokens)}
}

// ramp has requests come, ten a second, until the trial is over. It returns how many came to
// the new model.
func ramp(trial *Trial, seed uint64, fresh, others answers) (requests int, took time.Duration) {
	r, now := rand.New(rand.NewPCG(seed, 1)), began
	for i := range 200_000 {
		if trial.state.Phase != control.CanaryRunning || trial.state.Waits {
			break
		}
		now = now.Add(100 * time.Millisecond)
		on, of := trial.Choose(fmt.Sprint(seed, i/4), true, now), &others
		if on {
			of = &fresh
			requests++
		}
		trial.Ended(on, of.one(r), now)
	}
	return requests, now.Sub(began)
}

// TestRamp: a model that is as good goes through all steps, each for its time and with its
// requests; chance alone rolls hardly one of a hundred back.
func TestRamp(t *testing.T) {
	const seeds = 100
	back := 0
	for seed := range uint64(seeds) {
		trial := newTrial("r", plan(), nil, began)
		requests, took := ramp(trial, seed, sound, sound)
		if s := trial.Shown(); s.State == control.CanaryRolledBack {
			back++
			t.Logf("seed %d: %s", seed, *s.Reason)
		} else if s.State != control.CanaryPromoted || s.Share != 1 || requests < 300 || took < 3*time.Minute {
			t.Errorf("seed %d: %+v after %d requests and %v", seed, s, requests, took)
		}
	}
	if back > seeds/50 {
		t.Errorf("%d of %d sound models were rolled back", back, seeds)
	}
	trial := newTrial("r", plan(func(p *configs.RouteCanary) { p.Promote = false }), nil, began)
	ramp(trial, 1, sound, sound)
	if s := trial.Shown(); s.State != control.CanaryRunning || s.Share != 0.5 || !strings.HasSuffix(*s.Reason, "it waits for promote") {
		t.Errorf("without promote it ends as %+v", s)
	}
	if err := trial.Command(Promote, "operator", began); err != nil || trial.Shown().Share != 1 {
		t.Error(err, trial.Shown())
	}
	if err := trial.Command("push", "operator", began); err != ErrVerb {
		t.Error(err)
	}
}

// TestRollsBack: what ails a model is found, named, and found early where requests fail.
func TestRollsBack(t *testing.T) {
	for name, one := range map[string]struct {
		ails func(*answers)
		want string
		most int // requests of the model until then
	}{
		"all fail":         {func(a *answers) { a.failed = 1 }, "100.0 % of its requests failed", 10},
		"a fifth fails":    {func(a *answers) { a.failed = 0.2 }, "% of its requests failed", 110},
		"half is refused":  {func(a *answers) { a.refused = 0.5 }, "% of its requests were refused", 40},
		"late first token": {func(a *answers) { a.first *= 2.5 }, "s to the first token", 310},
		"slow":             {func(a *answers) { a.pace /= 2.5 }, "tokens/s", 310},
		"endless":          {func(a *answers) { a.tokens *= 4 }, "its answers have", 310},
		"curt":             {func(a *answers) { a.tokens /= 4 }, "its answers have", 310},
	} {
		for seed := range uint64(20) {
			trial := newTrial("r", plan(), nil, began)
			ill := sound
			one.ails(&ill)
			requests, _ := ramp(trial, seed, ill, sound)
			if s := trial.Shown(); s.State != control.CanaryRolledBack || s.Share != 0 || !strings.Contains(*s.Reason, one.want) || requests > one.most {
				t.Errorf("%s, seed %d: %s after %d requests: %v", name, seed, s.State, requests, *s.Reason)
			}
		}
	}
}

// TestDoorsAgree: whoever has moved a trial on is followed, in whatever order they tell, and
// conversations that began at one door stay where they are at the other.
func TestDoorsAgree(t *testing.T) {
	one, other := newTrial("r", plan(), nil, began), newTrial("r", plan(), nil, began)
	where := map[string]bool{}
	for i := range 2000 {
		name := fmt.Sprint(i)
		where[name] = one.Choose(name, true, began)
	}
	other.Hear(one.Told(), began)
	other.step(2, began)
	stale := one.Told()
	one.Hear(other.Told(), began)
	other.Hear(stale, began)
	if a, b := one.Shown(), other.Shown(); a.Share != 0.5 || b.Share != 0.5 {
		t.Fatalf("one is at %g, the other at %g", a.Share, b.Share)
	}
	for name, was := range where {
		if other.Choose(name, true, began) != was {
			t.Fatalf("%s has moved from one door to the other", name)
		}
	}
	// At once one takes a step, and the other finds that the model is ill.
	one.step(2, began)
	other.move(control.CanaryRolledBack, "ill", began)
	a, b := one.Told(), other.Told()
	one.Hear(b, began)
	other.Hear(a, began)
	if one.Shown().State != control.CanaryRolledBack || other.Shown().State != control.CanaryRolledBack {
		t.Errorf("they end as %+v and %+v", one.Shown(), other.Shown())
	}
	third := newTrial("r", plan(func(p *configs.RouteCanary) { p.Model = "sql-3" }), nil, began)
	third.Hear(b, began)
	if third.Shown().State != control.CanaryRunning {
		t.Error("what is told of another model has rolled this one back")
	}
}

// TestForgets: conversations that nobody has gone on with for hours are forgotten, however
// often other doors tell of them; those that go on are not.
func TestForgets(t *testing.T) {
	trial := newTrial("r", plan(), nil, began)
	now := began
	for i := range 1000 {
		trial.Choose(fmt.Sprint(i), true, now)
	}
	told := trial.Whole()
	if len(told.Kept) != 8000 {
		t.Fatalf("%d bytes of a thousand conversations", len(told.Kept))
	}
	for range 8 {
		now = now.Add(30 * time.Minute)
		trial.Hear(control.CanaryState{Route: "r", Plan: told.Plan, Kept: told.Kept[:80]}, now)
		trial.Choose("7", true, now)
	}
	if left := len(trial.Whole().Kept) / 8; left > 11 {
		t.Errorf("%d conversations are kept after four hours", left)
	}
	for i := range 3 * keptMost {
		trial.Choose(fmt.Sprint("many ", i), true, now)
	}
	if left := len(trial.Whole().Kept) / 8; left > 2*keptMost {
		t.Errorf("%d conversations are kept; %d are the most", left, 2*keptMost)
	}
}
