package canary

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/configs"
)

// The verbs of operators.
const (
	Promote  = "promote"
	RollBack = "rollback"
	Restart  = "restart"
)

// ErrVerb is the error of a verb that there is not.
var ErrVerb = errors.New("a canary takes promote, rollback and restart")

// Trial is the trial of one route's new model.
type Trial struct {
	route, model string
	id           string // of the plan

	mu    sync.Mutex
	plan  configs.RouteCanary
	state control.CanaryState
	debt  float64 // of requests that belong to no conversation
	on    Evidence
	off   Evidence
	kept  kept
	dirty bool // the state is not written down
}

// newTrial begins a trial, or goes on with one that was kept.
func newTrial(route string, plan configs.RouteCanary, saved *control.CanaryState, now time.Time) *Trial {
	t := &Trial{route: route, model: plan.Model, id: plan.Digest(), plan: plan}
	t.state = control.CanaryState{Route: route, Model: plan.Model, Plan: t.id, Phase: control.CanaryRunning, Since: now.UTC()}
	if saved != nil {
		t.hear(*saved, now)
	}
	return t
}

// follow takes up what of the plan may change under way.
func (t *Trial) follow(plan configs.RouteCanary) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.plan = plan
}

// share is what of the requests goes to the model on trial.
func (t *Trial) share() float64 {
	switch t.state.Phase {
	case control.CanaryPromoted:
		return 1
	case control.CanaryRolledBack:
		return 0
	}
	return t.plan.Steps[min(t.state.Step, len(t.plan.Steps)-1)]
}

// Choose reports whether a request goes to the model on trial. name is that of its
// conversation, empty for one that is of none; ready reports whether the model can be
// asked. A conversation stays where it began, but for a model that is rolled back, or not
// there.
func (t *Trial) Choose(name string, ready bool, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	share := t.share()
	if share == 0 {
		return false
	}
	if name == "" {
		if !ready {
			return false
		}
		if t.debt += share; t.debt >= 1-1e-9 {
			t.debt--
			return true
		}
		return false
	}
	c := conversation(name)
	on, known := t.kept.find(c, now)
	if !known {
		on = ready && place(c, t.model) < share
		t.kept.begins(c, on, now)
	}
	return on && ready
}

// Ended takes in how a request has ended that went to the model on trial (on), or to the
// others. It reports whether that has moved the trial on.
func (t *Trial) Ended(on bool, o Outcome, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state.Phase != control.CanaryRunning {
		return false
	}
	if on {
		t.on.add(o)
	} else {
		t.off.add(o)
	}
	return t.look(now)
}

// Look moves the trial on where only time was missing.
func (t *Trial) Look(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state.Phase == control.CanaryRunning && t.look(now)
}

// look judges. t.mu is held.
func (t *Trial) look(now time.Time) bool {
	if t.on.Requests >= earliest {
		if why := worse(&t.on, &t.off, early); why != "" {
			t.move(control.CanaryRolledBack, why, now)
			return true
		}
	}
	if t.on.Requests < t.plan.MinRequests || now.Sub(t.state.Since) < t.plan.Hold.Std() {
		return false
	}
	why := worse(&t.on, &t.off, sure)
	if why == "" {
		why = worseOn(&t.on, &t.off)
	}
	last := t.state.Step >= len(t.plan.Steps)-1
	switch {
	case why != "":
		t.move(control.CanaryRolledBack, why, now)
	case !last:
		t.state.Step++
		t.move(control.CanaryRunning, t.sound(), now)
	case t.plan.Promote:
		t.move(control.CanaryPromoted, t.sound(), now)
	case t.state.Waits:
		return false
	default:
		t.state.Waits = true
		t.changed(control.CanaryRunning, t.sound()+"; it waits for promote", t.state.Since)
	}
	return true
}

// sound says that nothing is wrong.
func (t *Trial) sound() string {
	return fmt.Sprintf("no worse than the others after %d requests", t.on.Requests)
}

// move begins a step, or ends the trial.
func (t *Trial) move(phase control.CanaryPhase, why string, now time.Time) {
	t.on, t.off, t.debt, t.state.Waits = Evidence{}, Evidence{}, 0, false
	t.changed(phase, why, now.UTC())
}

func (t *Trial) changed(phase control.CanaryPhase, why string, since time.Time) {
	t.state.Phase, t.state.Reason, t.state.Since, t.dirty = phase, why, since, true
	t.state.Serial++
	if phase == control.CanaryRolledBack {
		t.kept = kept{}
	}
}

// Command does what an operator asks for.
func (t *Trial) Command(verb, who string, now time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch verb {
	case Promote:
		t.move(control.CanaryPromoted, "promoted by "+who, now)
	case RollBack:
		t.move(control.CanaryRolledBack, "rolled back by "+who, now)
	case Restart:
		t.state.Step = 0
		t.kept = kept{}
		t.move(control.CanaryRunning, "begun again by "+who, now)
	default:
		return ErrVerb
	}
	return nil
}

// Hear takes what another door knows of the trial: whoever has moved it on further is
// right, and of two who have moved it as far the one who rolled it back.
func (t *Trial) Hear(s control.CanaryState, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hear(s, now)
}

func (t *Trial) hear(s control.CanaryState, now time.Time) {
	if s.Route != t.route || s.Plan != t.id {
		return // it has, or had, another plan
	}
	words := s.Kept
	s.Kept = nil
	if s.Serial > t.state.Serial || s.Serial == t.state.Serial && s.Phase == control.CanaryRolledBack && t.state.Phase != s.Phase {
		if s.Step < 0 {
			s.Step = 0
		}
		t.on, t.off, t.debt, t.dirty = Evidence{}, Evidence{}, 0, true
		t.state = s
		if s.Phase == control.CanaryRolledBack {
			t.kept = kept{}
		}
	}
	if t.state.Phase != control.CanaryRolledBack {
		t.kept.take(words, now)
	}
}

// Told is what other doors are told: the state, and the conversations that began since they
// were told last.
func (t *Trial) Told() control.CanaryState {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.state
	s.Kept = packed(t.kept.untold)
	t.kept.untold = nil
	return s
}

// Whole is the state with all conversations.
func (t *Trial) Whole() control.CanaryState {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.state
	s.Kept = t.kept.export()
	return s
}

// unwritten reports whether the state, or only what is kept of conversations, is to be
// written down, and takes it for written.
func (t *Trial) unwritten() (state, conversations bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	state, conversations = t.dirty, t.kept.unsaved
	t.dirty = false
	return state, conversations
}

// written notes that the conversations are written down.
func (t *Trial) written() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept.unsaved = false
}

// Shown is the trial as operators see it.
func (t *Trial) Shown() control.CanaryShown {
	t.mu.Lock()
	defer t.mu.Unlock()
	return control.CanaryShown{
		Route: t.route, Model: t.state.Model, State: t.state.Phase, Share: t.share(), Steps: t.plan.Steps, Step: t.state.Step + 1,
		Reason: control.Known(t.state.Reason), Since: t.state.Since, MinRequests: t.plan.MinRequests, Serial: t.state.Serial,
		Trial: t.on.shown(), Others: t.off.shown(),
	}
}

// shown is one side as operators see it.
func (e *Evidence) shown() control.CanarySide {
	return control.CanarySide{
		Requests: e.Requests, Failed: e.Failed, Refused: e.Refused,
		TTFT: control.Known(e.First.mean), Pace: control.Known(e.Pace.mean), Tokens: control.Known(e.Tokens.mean),
	}
}
