package balancer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"roundhouse/balancer/canary"
	"roundhouse/balancer/control"
)

// tries reports whether a request goes to the model that its route has on trial.
func (a *asked) tries(r *route, body []byte, usable func(model string) bool) bool {
	if r.trial == nil {
		return false
	}
	a.trial = r.trial.Choose(r.conversationOf(a, body), usable(r.cfg.Canary.Model), a.wall)
	return a.trial
}

// conversationOf names the conversation that a request belongs to, which stays with its
// model while the share of the trial grows; empty: each request is for itself. Where a
// client names none, what it begins with does.
func (r *route) conversationOf(a *asked, body []byte) string {
	if r.cfg.Sticky == "none" || r.cfg.Sticky == "" {
		return ""
	}
	if r.cfg.Sticky != "prefix" && a.session != "" {
		return r.cfg.Sticky + " " + a.session
	}
	if !a.peek.Prompt.Set() {
		return ""
	}
	return "opening " + opening(a.peek.Prompt.Of(body))
}

// opening is what a conversation begins with and keeps: of messages, all up to the first of
// its user; of a text, its beginning.
func opening(prompt []byte) string {
	const most = 1024
	beginning := string(prompt[:min(len(prompt), most)])
	if len(prompt) == 0 || prompt[0] != '[' {
		return beginning
	}
	d := json.NewDecoder(bytes.NewReader(prompt))
	if _, err := d.Token(); err != nil {
		return beginning
	}
	for d.More() {
		var message struct {
			Role string `json:"role"`
		}
		if d.Decode(&message) != nil {
			return beginning // a list of texts, or of token ids
		}
		if message.Role == "user" {
			return string(prompt[:d.InputOffset()])
		}
	}
	return beginning
}

// judged tells the trial of a request's route how it has ended. A client that left says
// nothing of a model.
func (x *exchange) judged() {
	a, r := &x.asked, &x.record
	if a.route == nil || a.route.trial == nil || r.outcome == "cancelled" {
		return
	}
	o := canary.Outcome{Failed: r.outcome == "failed", Refused: r.outcome == "refused" || r.outcome == "client_error"}
	if r.outcome == "ok" {
		o.Tokens = float64(r.output())
		if a.streams() && r.first > a.start {
			o.First = float64(r.first-a.start) / 1e9
			if n, took := o.Tokens-1, float64(r.ended-r.first)/1e9; n >= 8 && took > 0 {
				o.Pace = n / took
			}
		}
	}
	if a.route.trial.Ended(a.trial, o, time.Now()) {
		x.d.canaryMoved(a.route.trial.Shown())
	}
}

// canaryMoved writes to the log that a trial has moved on.
func (d *common) canaryMoved(s control.CanaryShown) {
	d.log.Info("canary", "route", s.Route, "model", s.Model, "state", s.State, "share", s.Share, "why", *cmp.Or(s.Reason, new(string)))
}

// serveCanaries answers what is asked of trials.
func serveCanaries(d *common, m *http.ServeMux) {
	m.HandleFunc("GET /canaries", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, control.CanariesShown{Schema: 1, At: time.Now().UTC(), Canaries: d.canaries.Shown()})
	})
	m.HandleFunc("POST /canaries/{route}/{verb}", func(w http.ResponseWriter, r *http.Request) {
		t := d.canaries.Find(r.PathValue("route"))
		if t == nil {
			control.Fail(w, http.StatusNotFound, "there is no route "+strconv.Quote(r.PathValue("route"))+" with a canary")
			return
		}
		by := control.Asker(r)
		if name := r.URL.Query().Get("by"); name != "" {
			by = control.Named(name)
		}
		if err := t.Command(r.PathValue("verb"), by, time.Now()); err != nil {
			control.Fail(w, http.StatusNotFound, err.Error())
			return
		}
		d.canaries.Tend(time.Now(), false)
		d.canaryMoved(t.Shown())
		answer(w, map[string]any{"schema": 1, "canary": t.Shown()})
	})
}
