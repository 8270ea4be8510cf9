package wire

// Seen are the fields of a head that the door reads, beside those of its
// framing. Whoever reads a head fills it by Take, so that all read the same.
type Seen struct {
	Type, Encoding, Accept      []byte // Content-Type, Content-Encoding, Accept
	RequestID, Session          []byte // X-Request-Id, X-Session-Id
	Priority                    []byte // X-Roundhouse-Priority
	Authorization, Key          []byte // Authorization, X-Api-Key
	Connection, Upgrade, Origin []byte
	Traceparent, Tracestate     []byte
	Forwarded                   []byte // X-Forwarded-For; several are one list

	Again bool // one of them is given more than once; the last counts
}

// Take keeps a field if it is one of those that the door reads.
func (s *Seen) Take(name, value []byte) {
	at := s.place(name)
	if at == nil {
		return
	}
	if at == &s.Forwarded && *at != nil {
		value = append(append((*at)[:len(*at):len(*at)], ','), value...)
		*at = nil
	}
	s.Again = s.Again || *at != nil
	if *at = value; value == nil {
		*at = []byte{} // given, though empty
	}
}

// place finds where a field is kept, by its length first.
func (s *Seen) place(name []byte) *[]byte {
	switch len(name) {
	case 6:
		return s.either(name, "accept", &s.Accept, "origin", &s.Origin)
	case 7:
		return s.either(name, "upgrade", &s.Upgrade, "", nil)
	case 9:
		return s.either(name, "x-api-key", &s.Key, "", nil)
	case 10:
		return s.either(name, "connection", &s.Connection, "tracestate", &s.Tracestate)
	case 11:
		return s.either(name, "traceparent", &s.Traceparent, "", nil)
	case 12:
		at := s.either(name, "content-type", &s.Type, "x-request-id", &s.RequestID)
		if at == nil {
			at = s.either(name, "x-session-id", &s.Session, "", nil)
		}
		return at
	case 13:
		return s.either(name, "authorization", &s.Authorization, "", nil)
	case 15:
		return s.either(name, "x-forwarded-for", &s.Forwarded, "", nil)
	case 16:
		return s.either(name, "content-encoding", &s.Encoding, "", nil)
	case 21:
		return s.either(name, "x-roundhouse-priority", &s.Priority, "", nil)
	}
	return nil
}

func (s *Seen) either(name []byte, a string, of *[]byte, b string, other *[]byte) *[]byte {
	switch {
	case equalFold(name, a):
		return of
	case equalFold(name, b):
		return other
	}
	return nil
}
