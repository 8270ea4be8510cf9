package parser

import "encoding/json"

// jsonCall reads one call written as a JSON object: a name, and arguments or
// parameters. It takes byte by byte, hands out the name when it is known, and
// from then on the arguments as they come.
type jsonCall struct {
	state  callState
	key    []byte
	value  []byte
	field  callField
	depth  int
	quoted bool // inside a string
	escape bool // behind a backslash in it

	named   bool
	early   []byte // arguments that came before the name
	hasArgs bool
}

type callState int

const (
	atStart callState = iota
	atKey
	inKey
	atColon
	atValue
	inValue
	afterValue
	callDone
	callBad
)

type callField int

const (
	fieldOther callField = iota
	fieldName
	fieldArguments
)

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// feed takes a byte. The call's state reports whether it is done, or is none.
func (c *jsonCall) feed(b byte, out *output) {
	switch c.state {
	case atStart:
		if b == '{' {
			c.state = atKey
		} else if !isBlank(b) {
			c.state = callBad
		}
	case atKey:
		switch {
		case b == '"':
			c.key = append(c.key[:0], b)
			c.state = inKey
		case b == '}':
			c.close(out)
		case b != ',' && !isBlank(b):
			c.state = callBad
		}
	case inKey:
		c.key = append(c.key, b)
		if c.endsString(b) {
			c.state = atColon
		}
	case atColon:
		if b == ':' {
			c.state = atValue
		} else if !isBlank(b) {
			c.state = callBad
		}
	case atValue:
		if !isBlank(b) {
			c.beginValue(b, out)
		}
	case inValue:
		c.inside(b, out)
	case afterValue:
		switch {
		case b == ',':
			c.state = atKey
		case b == '}':
			c.close(out)
		case !isBlank(b):
			c.state = callBad
		}
	}
}

// endsString follows a string's bytes and reports its closing quote.
func (c *jsonCall) endsString(b byte) bool {
	switch {
	case c.escape:
		c.escape = false
	case b == '\\':
		c.escape = true
	case b == '"':
		return true
	}
	return false
}

func (c *jsonCall) beginValue(b byte, out *output) {
	var key string
	if json.Unmarshal(c.key, &key) != nil || b == ',' || b == '}' || b == ']' || b == ':' {
		c.state = callBad
		return
	}
	c.field = fieldOther
	switch {
	case key == "name" && !c.named:
		c.field = fieldName
	case (key == "arguments" || key == "parameters") && !c.hasArgs:
		c.field = fieldArguments
		c.hasArgs = true
	}
	c.value, c.depth, c.quoted = c.value[:0], 0, false
	c.state = inValue
	c.inside(b, out)
}

// inside takes a byte of a value, or the one that ends it.
func (c *jsonCall) inside(b byte, out *output) {
	if c.quoted {
		c.keep(b, out)
		if c.endsString(b) {
			c.quoted = false
			if c.depth == 0 {
				c.endValue(out)
			}
		}
		return
	}
	switch {
	case b == '"':
		c.quoted = true
	case b == '{' || b == '[':
		c.depth++
	case b == '}' || b == ']':
		if c.depth == 0 { // a number or word ended, and the call with it
			if c.endValue(out); c.state != callBad && b == '}' {
				c.close(out)
			} else {
				c.state = callBad
			}
			return
		}
		c.depth--
		c.keep(b, out)
		if c.depth == 0 {
			c.endValue(out)
		}
		return
	case c.depth == 0 && (b == ',' || isBlank(b)):
		if c.endValue(out); c.state != callBad && b == ',' {
			c.state = atKey
		}
		return
	}
	c.keep(b, out)
}

// keep takes a byte into the value. Arguments that are an object are handed
// on; a string, which holds them as JSON, is known at its end only.
func (c *jsonCall) keep(b byte, out *output) {
	if c.field != fieldArguments || len(c.value) > 0 && c.value[0] == '"' || b == '"' && c.depth == 0 {
		c.value = append(c.value, b)
		return
	}
	if c.named {
		out.argument(b)
		return
	}
	c.early = append(c.early, b)
}

func (c *jsonCall) say(s string, out *output) {
	if c.named {
		out.arguments(s)
		return
	}
	c.early = append(c.early, s...)
}

func (c *jsonCall) endValue(out *output) {
	c.state = afterValue
	switch c.field {
	case fieldName:
		var name string
		if json.Unmarshal(c.value, &name) != nil || name == "" {
			c.state = callBad
			return
		}
		c.named = true
		out.begin(name)
		out.arguments(string(c.early))
	case fieldArguments:
		var inner string
		if len(c.value) > 0 && json.Unmarshal(c.value, &inner) == nil {
			c.say(inner, out)
		}
	}
}

func (c *jsonCall) close(out *output) {
	if !c.named {
		c.state = callBad
		return
	}
	if !c.hasArgs {
		out.arguments("{}")
	}
	c.state = callDone
}
