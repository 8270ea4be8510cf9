package wire

import "bytes"

// NextEvent returns the length of the first whole event at the front of b, its
// empty line included, or 0 while there is none. Lines end in LF, CR or CRLF.
func NextEvent(b []byte) int {
	// Nearly every event that an engine sends ends in LF LF; a CR anywhere
	// before that takes the slow way.
	at := bytes.Index(b, []byte("\n\n"))
	end := len(b)
	if at >= 0 {
		end = at + 2
	}
	if bytes.IndexByte(b[:end], '\r') < 0 {
		if at < 0 {
			return 0
		}
		return at + 2
	}
	return nextEventSlow(b)
}

func nextEventSlow(b []byte) int {
	blank := true // nothing on this line yet
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '\n':
			if blank && i > 0 {
				return i + 1
			}
			blank = true
		case '\r':
			if i+1 == len(b) {
				return 0 // an LF may follow
			}
			if b[i+1] == '\n' {
				i++
			}
			if blank && i > 1 {
				return i + 1
			}
			blank = true
		default:
			blank = false
		}
	}
	return 0
}

// EventData returns the data of an event that has one data line, without
// copying; ok is false where there is none, or more than one.
func EventData(event []byte) (data []byte, ok bool) {
	if len(event) > 6 && string(event[:6]) == "data: " {
		// The common shape: one data line and the end.
		if n := bytes.IndexByte(event, '\n'); n == len(event)-2 {
			return event[6:n], true
		}
	}
	for len(event) > 0 {
		n := bytes.IndexAny(event, "\r\n")
		if n < 0 {
			n = len(event)
		}
		line := event[:n]
		event = event[min(n+1, len(event)):]
		rest, found := bytes.CutPrefix(line, []byte("data:"))
		if !found {
			continue
		}
		if ok {
			return nil, false
		}
		data, ok = bytes.TrimPrefix(rest, []byte(" ")), true
	}
	return data, ok
}

// CutField takes the first `"name":value` out of a JSON text, in place, with
// the comma that parts it from its neighbours. It returns the shortened text
// and a copy-free view of the value, which stays valid until the next change.
//
// Inside a JSON string every quote is escaped, so the quoted name with its
// colon can only be a key. What a worker says need not be UTF-8: it passes as
// it is.
func CutField(b []byte, quoted string, value func([]byte)) ([]byte, bool) {
	at := bytes.Index(b, []byte(quoted))
	if at < 0 {
		return b, false
	}
	i := at + len(quoted)
	s := scanner{b: b, i: i, wide: true}
	s.space()
	if s.i >= len(b) || b[s.i] != ':' {
		return b, false
	}
	s.i++
	s.space()
	from := s.i
	if s.value(0) != nil {
		return b, false
	}
	if value != nil {
		value(b[from:s.i])
	}
	end := s.i
	s.space()
	if s.i < len(b) && b[s.i] == ',' {
		end = s.i + 1
	} else if at > 0 && b[at-1] == ',' {
		at--
	}
	return append(b[:at], b[end:]...), true
}

// Field returns the value of the first `"name":value` in a JSON text.
func Field(b []byte, quoted string) ([]byte, bool) {
	at := bytes.Index(b, []byte(quoted))
	if at < 0 {
		return nil, false
	}
	s := scanner{b: b, i: at + len(quoted), wide: true}
	s.space()
	if s.i >= len(b) || b[s.i] != ':' {
		return nil, false
	}
	s.i++
	s.space()
	from := s.i
	if s.value(0) != nil {
		return nil, false
	}
	return b[from:s.i], true
}

// Ints appends the numbers of a JSON list of whole numbers to dst; what is not
// such a list appends nothing.
func Ints(dst []int32, list []byte) []int32 {
	if len(list) < 2 || list[0] != '[' {
		return dst
	}
	n, digits, neg := int64(0), false, false
	was := len(dst)
	for _, c := range list[1:] {
		switch {
		case c >= '0' && c <= '9':
			n, digits = n*10+int64(c-'0'), true
			if n > 1<<31-1 {
				return dst[:was]
			}
		case c == '-' && !digits:
			neg = true
		case c == ',' || c == ']':
			if digits {
				if neg {
					n = -n
				}
				dst = append(dst, int32(n))
			}
			n, digits, neg = 0, false, false
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
		default:
			return dst[:was]
		}
	}
	return dst
}
