package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"roundhouse/balancer/control"
)

// What may be looked at.
const (
	list      = ""
	oneWorker = "worker"
	log       = "log"
	explain   = "explain"
	events    = "events"
	help      = "help"
)

// Want is what the view shows that the stream does not tell; zero: nothing.
type Want struct {
	View   string // log or explain
	Worker string
}

// Seen is what was asked for a view.
type Seen struct {
	Want
	Lines   []string           // of a log
	Choices []control.Decision // the newest first
	Error   string
}

// Want returns what is to be asked for the present view.
func (s *Screen) Want() Want {
	if s.view == log || s.view == explain {
		return Want{s.view, s.at}
	}
	return Want{}
}

// Show takes what has come, unless another view is open by now.
func (s *Screen) Show(got Seen) {
	if got.Want != s.Want() {
		return
	}
	if s.view == explain && s.back > 0 && len(s.seen.Choices) > 0 { // the same one stays in sight
		at := s.choice().Request
		s.back = max(0, slices.IndexFunc(got.Choices, func(d control.Decision) bool { return d.Request == at }))
	}
	s.seen = got
}

// look opens a view; those of one worker need that one is chosen.
func (s *Screen) look(view string) {
	if s.at == "" && (view == oneWorker || view == log) {
		s.said = "choose a worker first: up and down"
		return
	}
	if s.view != view {
		s.view, s.back, s.seen = view, 0, Seen{}
	}
}

func (s *Screen) leave() { s.view, s.back, s.seen = list, 0, Seen{} }

// tail is as many lines as there is room for, s.back lines before the end.
func (s *Screen) tail(lines []string, room int) []string {
	room = max(1, room)
	s.back = max(0, min(s.back, len(lines)-room))
	end := len(lines) - s.back
	return lines[max(0, end-room):end]
}

// state is a line of why a view is empty, or that it is scrolled.
func (s *Screen) state(asked bool, n int, none string) string {
	switch {
	case asked && s.seen.Error != "":
		return clean(s.seen.Error)
	case asked && s.seen.Want != s.Want():
		return "asking ..."
	case n == 0:
		return none
	case s.back > 0:
		return fmt.Sprintf("%d lines later", s.back)
	}
	return ""
}

func (s *Screen) log(room int) []string {
	lines := make([]string, len(s.seen.Lines))
	for i, line := range s.seen.Lines {
		lines[i] = clean(line)
	}
	shown := s.tail(lines, room-1)
	return append([]string{"log of " + clean(s.at) + "  " + s.state(true, len(lines), "it has written nothing")}, shown...)
}

func (s *Screen) events(room int) []string {
	var lines []string
	for _, e := range s.House.Events {
		lines = append(lines, fmt.Sprintf("%s  %-12s %s %s  (%s)", e.At.UTC().Format("15:04:05"), cut(clean(e.Kind), 12), cell(clean(cmp.Or(e.Worker, e.Pool)), 18), clean(e.Text), clean(e.Who)))
	}
	shown := s.tail(lines, room-1)
	return append([]string{"events, UTC  " + s.state(false, len(lines), "none yet")}, shown...)
}

// choice is the one that is looked at.
func (s *Screen) choice() *control.Decision {
	s.back = min(s.back, len(s.seen.Choices)-1)
	return &s.seen.Choices[s.back]
}

// explain tells of one choice: the candidates by their forecasts, the chosen one marked,
// and why others were out.
func (s *Screen) explain() []string {
	of := "choices"
	if s.at != "" {
		of = "choices for and against " + clean(s.at)
	}
	if len(s.seen.Choices) == 0 {
		return []string{of + "  " + s.state(true, 0, "none among the last: nobody asked")}
	}
	d := s.choice()
	lines := []string{
		fmt.Sprintf("%s  %d of %d, the newest first", of, s.back+1, len(s.seen.Choices)),
		fmt.Sprintf("%s  request %s  pool %s  policy %s  needs %d tokens", d.At.UTC().Format("15:04:05 UTC"), clean(d.Request), clean(d.Pool), clean(d.Policy), d.Need),
		fmt.Sprintf("to %s: %s", clean(d.Chosen), cmp.Or(reasons[d.Reason], clean(d.Reason))), "",
		fmt.Sprintf("  %-18s %-16s %7s %8s %7s %7s %7s", "CANDIDATE", "FIRST TOKEN", "", "SCORE", "KV", "CACHED", "BEFORE"),
	}
	most := 0.0
	for _, c := range d.Candidates {
		most = max(most, or(c.PredictedTTFT, 0))
	}
	candidates := slices.Clone(d.Candidates)
	slices.SortStableFunc(candidates, func(a, b control.Candidate) int {
		return cmp.Or(strings.Compare(a.Excluded, b.Excluded), cmp.Compare(a.Score, b.Score))
	})
	for i := range candidates {
		lines = append(lines, s.candidate(&candidates[i], candidates[i].Worker == d.Chosen, most))
	}
	return lines
}

func (s *Screen) candidate(c *control.Candidate, chosen bool, most float64) string {
	sign := "  "
	if chosen {
		sign = "> "
	}
	if c.Excluded != "" {
		return fmt.Sprintf("%s%s out: %s", sign, cell(clean(c.Worker), 18), clean(c.Excluded))
	}
	full := "█"
	if s.ASCII {
		full = "#"
	}
	bar := ""
	if c.PredictedTTFT != nil && most > 0 {
		bar = strings.Repeat(full, max(1, int(16**c.PredictedTTFT/most)))
	}
	usage := "-"
	if c.CapacityTokens != nil && *c.CapacityTokens > 0 {
		usage = fmt.Sprintf("%.0f%%", 100*float64(c.ChargedTokens+c.ForeignTokens)/float64(*c.CapacityTokens))
	}
	line := fmt.Sprintf("%s%s %-16s %7s %8.3g %7s %7d %7d", sign, cell(clean(c.Worker), 18), bar, seconds(c.PredictedTTFT), c.Score, usage, c.PrefixTokens, c.PrefillTokens)
	if chosen {
		return s.paint("ready", line)
	}
	return line
}

var reasons = map[string]string{
	"least": "it would be the least full once the request is there", "tie": "several were equal, and it was its turn", "prefix": "it has the most of the prompt in its cache",
	"sticky": "the session is there", "only": "no other could take it", "no_report": "without a report to go by",
}

func (s *Screen) help() []string {
	return []string{
		"up down j k pgup pgdn   choose a worker; scroll in a view",
		"s   sort: name, KV, in flight, TTFT, speed, restarts, state",
		"/   filter by name or state; esc takes it away",
		"space   tag a worker: an action goes to all that are tagged",
		"enter   one worker", "l   its log", "e   explain: why the last requests went where they went", "v   events", "esc   back", "",
		"d   drain", "u   undrain", "r   rotate: drain, stop, start, warm up", "    each asks first, and is done by y alone", "",
		"p   pause what is shown", "q   quit",
	}
}
