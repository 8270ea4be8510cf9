package pass

import (
	"bytes"
	"io"
)

// Begin is how much of a body is held before the rest streams: what names the model
// must stand in it, and a body that is no longer can be sent a second time.
const Begin = 1 << 20

// Spool is a body whose beginning is held, and whose rest comes as it is read.
type Spool struct {
	Head  []byte
	Whole bool // Head is all of it
	rest  io.Reader
	begun bool // bytes of rest were read
}

// Take reads the beginning of a body, up to most bytes.
func Take(body io.Reader, most int) (*Spool, error) {
	head, err := io.ReadAll(io.LimitReader(body, int64(most)))
	if err != nil {
		return nil, err
	}
	s := &Spool{Head: head, rest: body}
	if len(head) == most {
		var one [1]byte
		n, err := io.ReadFull(body, one[:])
		if n == 1 {
			s.rest = io.MultiReader(bytes.NewReader(one[:]), body)
			return s, nil
		}
		if err != io.EOF {
			return nil, err
		}
	}
	s.Whole = true
	return s, nil
}

// Again reports whether the body can be sent from its beginning.
func (s *Spool) Again() bool { return s.Whole || !s.begun }

// Reader reads the body from its beginning, once Again says that it can be.
func (s *Spool) Reader() io.Reader {
	if s.Whole {
		return bytes.NewReader(s.Head)
	}
	return io.MultiReader(bytes.NewReader(s.Head), reading{s})
}

// reading notes that the rest of a spool is read.
type reading struct{ s *Spool }

func (r reading) Read(p []byte) (int, error) {
	r.s.begun = true
	return r.s.rest.Read(p)
}
