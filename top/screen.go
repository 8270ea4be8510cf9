package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/live"
)

type worker = control.WorkerShown

// Screen is what somebody looks at: which workers, in which order, and what is asked.
type Screen struct {
	Wide, High int
	Plain      bool // no colours
	ASCII      bool
	House      *House
	Now        time.Time

	order  int // of orders
	filter string
	typing bool // the filter
	at     string
	tagged map[string]bool
	view   string // what is looked at: list, or one of the views
	back   int    // by how many lines a view is scrolled, or which choice is looked at
	seen   Seen   // what was asked for the view
	going  *House // as it is told while what is shown stays; nil: that is House
	asked  *ask   // is to be confirmed
	said   string // what the last action came to
}

// ask is an action that waits for a yes.
type ask struct {
	verb    string
	workers []string
	text    string
}

// orders are the ways that workers are sorted, by the key s.
var orders = []struct {
	name string
	less func(a, b *worker) int
}{
	{"name", func(a, b *worker) int { return 0 }},
	{"KV", func(a, b *worker) int { return -cmp.Compare(or(a.KV.Usage, -1), or(b.KV.Usage, -1)) }},
	{"in flight", func(a, b *worker) int { return -cmp.Compare(a.Requests.InFlight, b.Requests.InFlight) }},
	{"TTFT", func(a, b *worker) int {
		return -cmp.Compare(or(a.Traffic.TTFTSeconds, -1), or(b.Traffic.TTFTSeconds, -1))
	}},
	{"speed", func(a, b *worker) int {
		return cmp.Compare(or(a.Traffic.TokensPerSecond, 1e9), or(b.Traffic.TokensPerSecond, 1e9))
	}},
	{"restarts", func(a, b *worker) int { return -cmp.Compare(a.Restarts, b.Restarts) }},
	{"state", func(a, b *worker) int { return cmp.Compare(a.State, b.State) }},
}

func or(v *float64, otherwise float64) float64 {
	if v == nil {
		return otherwise
	}
	return *v
}

// rows are the workers that are shown, in their order.
func (s *Screen) rows() []*worker {
	var out []*worker
	for i := range s.House.State.Workers {
		w := &s.House.State.Workers[i]
		if s.filter == "" || strings.Contains(w.ID+" "+string(w.State), s.filter) {
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b *worker) int { return orders[s.order].less(a, b) })
	return out
}

// Frame draws the screen: as many lines as it is high, none longer than it is wide.
func (s *Screen) Frame() []string {
	var lines []string
	st := &s.House.State
	lines = append(lines, s.paint(string(st.Verdict.Severity), s.mark(string(st.Verdict.Severity))+" "+strings.ReplaceAll(string(st.Verdict.Severity), "_", " "))+"  "+clean(st.Verdict.Sentence))
	lines = append(lines, s.summary(), s.courses())
	room := s.High - len(lines) - 1
	switch s.view {
	case list:
		lines = append(lines, s.pools()...)
		lines = append(lines, "")
		lines = append(lines, s.table(s.High-len(lines)-1)...)
	case oneWorker:
		lines = append(lines, s.detail()...)
	case log:
		lines = append(lines, s.log(room)...)
	case explain:
		lines = append(lines, s.explain()...)
	case events:
		lines = append(lines, s.events(room)...)
	case help:
		lines = append(lines, s.help()...)
	}
	for len(lines) < s.High-1 {
		lines = append(lines, "")
	}
	lines = append(lines[:max(0, s.High-1)], s.footer())
	for i := range lines {
		lines[i] = cut(lines[i], s.Wide)
	}
	return lines
}

// Once draws everything that there is, for who looks once.
func (s *Screen) Once() []string {
	s.High = 8 + len(s.House.State.Pools) + len(s.House.State.Workers)
	lines := s.Frame()
	lines = lines[:len(lines)-1]
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// marks are the shapes of severities and states: never a colour alone.
var marks = map[string][2]string{ // as it is, in ASCII
	"well": {"●", "+"}, "ready": {"●", "+"}, "changing": {"◐", "~"}, "draining": {"◐", "~"}, "starting": {"◐", "~"}, "warming": {"◐", "~"},
	"at_risk": {"▲", "!"}, "ejected": {"▲", "!"}, "unreachable": {"▲", "!"}, "hurting": {"✖", "X"}, "down": {"✖", "X"}, "failed": {"✖", "X"}, "quarantined": {"✖", "X"},
	"drained": {"○", "o"}, "stopped": {"○", "o"},
}

func (s *Screen) mark(state string) string {
	m, ok := marks[state]
	if !ok {
		m = [2]string{"·", "."}
	}
	if s.ASCII {
		return m[1]
	}
	return m[0]
}

// colours are those of severities and states.
var colours = map[string]string{
	"well": "32", "ready": "32", "changing": "36", "draining": "36", "starting": "36", "warming": "36", "at_risk": "33", "ejected": "33", "unreachable": "33",
	"hurting": "31", "down": "31", "failed": "31", "quarantined": "31",
}

func (s *Screen) paint(state, text string) string {
	if c := colours[state]; c != "" && !s.Plain {
		return "\x1b[" + c + "m" + text + "\x1b[0m"
	}
	return text
}

func (s *Screen) summary() string {
	st := &s.House.State
	door := st.Door
	text := fmt.Sprintf("door %s  streams %d  waiting %d", door.State, door.Streams, door.Queued)
	if len(st.Figures) > 0 {
		f := &st.Figures[0]
		text += fmt.Sprintf("  tok/s %s  ttft p50/p95 %s/%s", figure(f.Tokens), seconds(f.TTFT50), seconds(f.TTFT95))
	}
	switch age := s.Now.Sub(s.House.Told); {
	case s.House.Gone != "":
		text = "STALE: " + clean(s.House.Gone) + "  " + text
	case s.going != nil:
		text = "paused  " + text
	case age > 3*time.Second:
		text = fmt.Sprintf("STALE: data %.0f s old  ", age.Seconds()) + text
	}
	return text
}

func (s *Screen) pools() []string {
	lines := []string{}
	st := &s.House.State
	for i := range st.Pools {
		if i == 4 && len(st.Pools) > 5 && s.High < 40 {
			lines = append(lines, fmt.Sprintf("and %d pools more", len(st.Pools)-i))
			break
		}
		p := &st.Pools[i]
		var f live.Figures
		for _, x := range st.Figures {
			if x.Pool != nil && *x.Pool == p.Name {
				f = x
			}
		}
		line := fmt.Sprintf("%-14s %d/%d ready  kv %s  in flight %d  waiting %d  tok/s %s  %s", cut(clean(p.Name), 14), p.Ready, p.Desired,
			share(f.KVUsage), f.InFlight, f.Waiting, figure(f.Tokens), p.Rotation.State)
		if s.Wide >= broad {
			line = fmt.Sprintf("%-85s %s", line, s.spark(tokensOf(p.Name), 0, keptPoints))
		}
		lines = append(lines, line)
	}
	return lines
}

// table is the workers, as many as there is room for, those around the chosen one.
func (s *Screen) table(room int) []string {
	rows := s.rows()
	lines := []string{fmt.Sprintf("  %-16s %-13s %-15s %4s %4s %6s %5s %4s %3s", "WORKER", "STATE", "KV", "FLY", "WAIT", "TTFT", "TOK/S", "HITS", "RST")}
	if s.Wide >= broad {
		lines[0] += "  KV, TWO MINUTES"
	}
	room = max(1, room-1)
	at := max(0, slices.IndexFunc(rows, func(w *worker) bool { return w.ID == s.at }))
	from := max(0, min(at-room/2, len(rows)-room))
	for i := from; i < min(len(rows), from+room); i++ {
		lines = append(lines, s.row(rows[i], rows[i].ID == s.at))
	}
	if len(rows) == 0 {
		lines = append(lines, "  no worker"+map[bool]string{true: " that matches " + clean(s.filter)}[s.filter != ""])
	}
	return lines
}

func (s *Screen) row(w *worker, chosen bool) string {
	sign := "  "
	switch {
	case chosen:
		sign = "> "
	case s.tagged[w.ID]:
		sign = "* "
	}
	if chosen && s.tagged[w.ID] {
		sign = ">*"
	}
	waiting := "-"
	if w.Requests.Waiting != nil {
		waiting = fmt.Sprint(*w.Requests.Waiting)
	}
	state := s.paint(string(w.State), fmt.Sprintf("%-13s", s.mark(string(w.State))+" "+string(w.State)))
	line := fmt.Sprintf("%s%s %s %-15s %4d %4s %6s %5s %4s %3d", sign, cell(clean(w.ID), 16), state, s.bar(w.KV.Usage), w.Requests.InFlight, waiting,
		seconds(w.Traffic.TTFTSeconds), figure(w.Traffic.TokensPerSecond), share(w.Traffic.PrefixHits), w.Restarts)
	if s.Wide >= broad {
		line += "  " + s.spark(cacheOf(w.ID), 1, keptPoints)
	}
	return line
}

// bar is how full a cache is: ten cells and the figure.
func (s *Screen) bar(usage *float64) string {
	if usage == nil {
		return "unknown"
	}
	full, empty := "█", "░"
	if s.ASCII {
		full, empty = "#", "."
	}
	n := min(10, max(0, int(*usage*10+0.5)))
	return strings.Repeat(full, n) + strings.Repeat(empty, 10-n) + " " + share(usage)
}

// broad is how wide a terminal is that has room for the course of each figure.
const broad = 112

// courses are the last two minutes of all pools together.
func (s *Screen) courses() string {
	if len(s.House.Course[allTokens]) == 0 {
		return ""
	}
	return fmt.Sprintf("two minutes: tok/s %s  waiting %s", s.spark(allTokens, 0, keptPoints), s.spark(allWaiting, 0, keptPoints))
}

// detail is one worker.
func (s *Screen) detail() []string {
	i := s.House.find(s.at)
	if i < 0 {
		return []string{clean(s.at) + " is no more"}
	}
	w := &s.House.State.Workers[i]
	text := func(v *string) string {
		if v == nil {
			return "-"
		}
		return clean(*v)
	}
	lines := []string{
		clean(w.ID) + "  " + s.paint(string(w.State), s.mark(string(w.State))+" "+string(w.State)) + "  since " + w.Since.UTC().Format("15:04:05 UTC"),
		"why       " + text(w.Reason),
		"models    " + clean(strings.Join(w.Models, ", ")),
		"kv        " + s.bar(w.KV.Usage) + fmt.Sprintf("  charged %d, foreign %d, of %s", w.KV.ChargedTokens, w.KV.ForeignTokens, whole(w.KV.CapacityTokens)),
		fmt.Sprintf("requests  in flight %d, waiting %s, oldest %s", w.Requests.InFlight, count(w.Requests.Waiting), seconds(w.Requests.OldestSeconds)),
		fmt.Sprintf("speed     ttft %s, %s tok/s of a stream, prefix hits %s", seconds(w.Traffic.TTFTSeconds), figure(w.Traffic.TokensPerSecond), share(w.Traffic.PrefixHits)),
		fmt.Sprintf("served    %s, failed %s, preemptions %s, restarts %d", whole(w.Traffic.Served), whole(w.Traffic.Failed), whole(w.Traffic.Preemptions), w.Restarts),
		fmt.Sprintf("device    %s, busy %s, %s W, %s C", text(w.Device.Name), share(w.Device.Busy), figure(w.Device.Power), figure(w.Device.Temperature)),
		"address   " + text(w.URL),
		"image     " + text(w.Place.Image),
		"error     " + text(w.LastError), "",
	}
	for _, e := range s.House.Events {
		if e.Worker == w.ID {
			lines = append(lines, e.At.UTC().Format("15:04:05")+" "+clean(e.Kind+": "+e.Text))
		}
	}
	return lines
}

func (s *Screen) footer() string {
	switch {
	case s.asked != nil:
		return s.asked.text + " [y/N]"
	case s.typing:
		return "/" + clean(s.filter) + "_"
	case s.said != "":
		return clean(s.said)
	case s.view == oneWorker:
		return "esc back  l log  e explain  d drain  u undrain  r rotate  q quit"
	case s.view == explain:
		return "up and down: the choice before, or after  esc back  q quit"
	case s.view != list:
		return "up and down scroll  esc back  q quit"
	}
	return "s sort: " + orders[s.order].name + "  / filter  enter  l log  e explain  v events  ? keys  q quit"
}
