package top

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Act is what was decided to do.
type Act struct {
	Verb    string
	Workers []string
}

// Press takes one key. It returns what is to be done now, if anything, and reports
// whether the end was asked for.
func (s *Screen) Press(key string) (act *Act, quit bool) {
	s.said = ""
	switch {
	case s.asked != nil:
		if key == "y" || key == "Y" {
			act = &Act{s.asked.verb, s.asked.workers}
		}
		s.asked = nil
		return act, key == "ctrl-c"
	case s.typing:
		s.typeKey(key)
		return nil, key == "ctrl-c"
	}
	switch key {
	case "q", "ctrl-c":
		return nil, true
	case "esc", "left":
		s.leave()
	case "enter", "right":
		s.look(oneWorker)
	case "l":
		s.look(log)
	case "e":
		s.look(explain)
	case "v":
		s.look(events)
	case "?", "h":
		s.look(help)
	case "down", "j":
		s.move(1)
	case "up", "k":
		s.move(-1)
	case "pgdn":
		s.move(10)
	case "pgup":
		s.move(-10)
	case "s":
		s.order = (s.order + 1) % len(orders)
	case "/":
		s.typing, s.filter = true, ""
	case " ":
		s.tag()
	case "p":
		s.pause()
	case "d":
		s.confirm("drain")
	case "u":
		s.confirm("undrain")
	case "r":
		s.confirm("rotate")
	}
	return nil, false
}

// pause has what is shown stay, or go on.
func (s *Screen) pause() {
	if s.going != nil {
		s.House, s.going = s.going, nil
		return
	}
	s.House, s.going = s.House.copy(), s.House
}

// Say shows what an action came to, until the next key.
func (s *Screen) Say(text string) { s.said = text }

func (s *Screen) typeKey(key string) {
	switch key {
	case "enter":
		s.typing = false
	case "esc":
		s.typing, s.filter = false, ""
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(s.filter)
		s.filter = s.filter[:len(s.filter)-n]
	default:
		if utf8.RuneCountInString(key) == 1 && len(s.filter) < 64 {
			s.filter += key
		}
	}
}

// move chooses another worker; in a view of lines it scrolls.
func (s *Screen) move(by int) {
	if s.view != list && s.view != oneWorker {
		s.back = max(0, s.back-by)
		return
	}
	rows := s.rows()
	if len(rows) == 0 {
		return
	}
	at := slices.IndexFunc(rows, func(w *worker) bool { return w.ID == s.at })
	switch {
	case at < 0 && by > 0:
		at = by - 1
	case at < 0:
		at = 0
	default:
		at += by
	}
	s.at = rows[max(0, min(at, len(rows)-1))].ID
}

func (s *Screen) tag() {
	if s.at == "" {
		return
	}
	if s.tagged == nil {
		s.tagged = map[string]bool{}
	}
	s.tagged[s.at] = !s.tagged[s.at]
	s.move(1)
}

// confirm asks whether an action is meant, with what it will do.
func (s *Screen) confirm(verb string) {
	var ids []string
	streams := 0
	for i := range s.House.State.Workers {
		w := &s.House.State.Workers[i]
		if s.tagged[w.ID] && s.view == list {
			ids = append(ids, w.ID)
		}
	}
	if len(ids) == 0 && s.at != "" {
		ids = []string{s.at}
	}
	switch {
	case len(ids) == 0:
		s.said = "choose a worker first: up and down, or space for several"
		return
	case s.House.Hello.Rights != "operator":
		s.said = "you may only look: this takes admin.token"
		return
	case !s.House.Hello.Supervisor && verb == "rotate":
		s.said = "this door runs alone: to turn a worker takes a supervisor"
		return
	}
	for _, id := range ids {
		if i := s.House.find(id); i >= 0 {
			streams += s.House.State.Workers[i].Requests.InFlight
		}
	}
	what := map[string]string{
		"drain":   fmt.Sprintf("takes no new requests; %d in flight go on", streams),
		"undrain": "takes requests again",
		"rotate":  fmt.Sprintf("is drained and started anew; %d in flight go on, or move", streams),
	}[verb]
	s.asked = &ask{verb, ids, clean(fmt.Sprintf("%s %s: %s?", verb, strings.Join(ids, ", "), what))}
}

// keysOf splits what a terminal has sent into keys. What is left is the beginning of one.
func keysOf(in []byte) (keys []string, left []byte) {
	for len(in) > 0 {
		if in[0] == 0x1b && len(in) > 1 && (in[1] == '[' || in[1] == 'O') {
			end := 2
			for end < len(in) && (in[end] < 0x40 || in[end] > 0x7e) {
				end++
			}
			if end == len(in) {
				return keys, in
			}
			if name := sequences[string(in[2:end+1])]; name != "" {
				keys = append(keys, name)
			}
			in = in[end+1:]
			continue
		}
		switch c := in[0]; {
		case c == 0x1b:
			keys = append(keys, "esc")
		case c == '\r' || c == '\n':
			keys = append(keys, "enter")
		case c == 0x7f || c == 8:
			keys = append(keys, "backspace")
		case c == 3:
			keys = append(keys, "ctrl-c")
		case c < ' ':
		case c < utf8.RuneSelf:
			keys = append(keys, string(rune(c)))
		default:
			if !utf8.FullRune(in) {
				return keys, in
			}
			r, n := utf8.DecodeRune(in)
			keys = append(keys, string(r))
			in = in[n-1:]
		}
		in = in[1:]
	}
	return keys, nil
}

var sequences = map[string]string{"A": "up", "B": "down", "C": "right", "D": "left", "5~": "pgup", "6~": "pgdn"}
