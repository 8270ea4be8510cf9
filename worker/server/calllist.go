package server

import (
	"encoding/json"
	"strings"
)

// callList reads the list of calls that an answer with tool_choice "required"
// is restricted to: [{"name": …, "parameters": {…}}, …]. The arguments are
// said as they come, the name as soon as it is complete.
type callList struct {
	depth  int // of brackets that are open
	quoted bool
	escape bool
	index  int
	key    string // the member of a call that is being read
	text   strings.Builder
	named  bool
}

func (l *callList) Add(text string) []Said {
	var out []Said
	for i := range len(text) {
		if p := l.byte(text[i]); p != nil {
			if n := len(out); n > 0 && p.Name == "" && out[n-1].Call.Index == p.Index {
				out[n-1].Call.Arguments += p.Arguments
				continue
			}
			out = append(out, Said{Call: p})
		}
	}
	return out
}

func (l *callList) End() []Said { return nil }

// byte takes one byte of the list. Depth 1 is the list, 2 a call, 3 and more
// a call's parameters.
func (l *callList) byte(c byte) *CallPiece {
	inside := l.depth >= 3 && l.key == "parameters"
	if l.quoted {
		return l.inString(c, inside)
	}
	switch c {
	case '"':
		l.quoted = true
		l.text.Reset()
	case '{', '[':
		l.depth++
		inside = l.depth >= 3 && l.key == "parameters"
	case '}', ']':
		l.depth--
		if l.depth == 1 && c == '}' {
			l.index++
			l.key, l.named = "", false
		}
	case ',':
		if l.depth == 2 {
			l.key = ""
		}
	}
	if inside {
		return &CallPiece{Index: l.index, Arguments: string([]byte{c})}
	}
	return nil
}

// inString takes a byte of a string: a member's name, the function's name, or
// a part of the arguments.
func (l *callList) inString(c byte, inside bool) *CallPiece {
	end := c == '"' && !l.escape
	l.escape = c == '\\' && !l.escape
	l.quoted = !end
	switch {
	case inside:
		return &CallPiece{Index: l.index, Arguments: string([]byte{c})}
	case !end:
		l.text.WriteByte(c)
	case l.depth == 2 && l.key == "":
		l.key = l.text.String()
	case l.depth == 2 && l.key == "name" && !l.named:
		var name string
		if json.Unmarshal([]byte(`"`+l.text.String()+`"`), &name) == nil {
			l.named = true
			return &CallPiece{Index: l.index, Name: name}
		}
	}
	return nil
}
