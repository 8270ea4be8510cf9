package resume

import (
	"bytes"
	"strconv"

	"roundhouse/balancer/wire"
)

// namedEvents is the client's part of a messages or responses stream, whose events
// build upon one another. It can be given again: the text must be the same,
// however it is cut into events, and the ids that each worker draws are replaced
// by those that the client knows.
type namedEvents struct {
	log  []byte   // the events that build, by their marks, and the text between them
	lane []byte   // of the last text
	ids  [][]byte // in the order in which they came
	seq  int64    // the last sequence_number

	replaying bool
	got       []byte
	gotLane   []byte
	gotIDs    [][]byte
}

// behind reports whether an answer that is given again has not yet said all that
// the client has.
func (n *namedEvents) behind() bool { return n.replaying && len(n.got) < len(n.log) }

// again makes it ready for the same answer from its beginning.
func (n *namedEvents) again() { n.replaying, n.got, n.gotLane, n.gotIDs = true, nil, nil, nil }

// The bytes that part the log; JSON text holds none below 0x20.
const (
	markEvent = 0x01
	markText  = 0x02
)

// namedEvent is event for the streams whose events have names.
func (s *Stream) namedEvent(o *Out, at int, data []byte) bool {
	if bytes.Contains(data, []byte(`"usage":{`)) {
		s.got.Usage.Read(data)
	}
	kind := eventType(o.B[at:])
	n := &s.names
	if s.way == Again && n.replaying {
		relay, ok := n.replay(o, at, kind, data)
		if !ok {
			s.broken = ErrDiffers
		}
		if !relay {
			return false
		}
		data, _ = wire.EventData(o.B[at:])
	}
	if !s.rigid {
		n.keep(kind, data)
	}
	s.renumber(o, at, data)
	switch string(kind) {
	case "response.completed", "response.failed", "response.incomplete", "message_stop":
		s.whole = true
	}
	if s.events == 0 && s.a.API == Responses {
		s.got.Stored = append([]byte(nil), data...)
		if v, ok := wire.Field(data, `"created_at"`); ok {
			s.created, _ = strconv.ParseInt(string(v), 10, 64)
		}
	}
	s.counts(0)
	return true
}

// eventType is the type of an event by its event line.
func eventType(event []byte) []byte {
	rest, ok := bytes.CutPrefix(event, []byte("event:"))
	if end := bytes.IndexAny(rest, "\r\n"); ok && end >= 0 {
		return bytes.TrimSpace(rest[:end])
	}
	return nil
}

// pieceOf finds the text that an event adds to the text before, and puts the part
// of the answer that it belongs to behind dst; from is 0 where the event adds none.
func pieceOf(dst, kind, data []byte) (lane []byte, from, to int) {
	if !bytes.HasSuffix(kind, []byte("delta")) || string(kind) == "message_delta" {
		return dst, 0, 0
	}
	for _, f := range [...]string{`"text":"`, `"thinking":"`, `"partial_json":"`, `"delta":"`} {
		if at := bytes.Index(data, []byte(f)); at >= 0 {
			from = at + len(f)
			return append(place(append(dst, kind...), data), f...), from, from + stringEnd(data[from:])
		}
	}
	return dst, 0, 0
}

// place puts where in the answer an event belongs behind dst.
func place(dst, data []byte) []byte {
	for _, f := range [...]string{`"index"`, `"output_index"`, `"content_index"`, `"summary_index"`} {
		if v, ok := wire.Field(data, f); ok {
			dst = append(dst, v...)
		}
		dst = append(dst, '/')
	}
	return dst
}

// markOf is all of a building event that is the same whoever says it.
func markOf(kind, data []byte) []byte {
	b := place(append([]byte{markEvent}, kind...), data)
	if v, ok := wire.Field(data, `"name"`); ok {
		b = append(b, v...)
	}
	return b
}

// idsOf appends the ids of an event that are not yet among those of the list.
func idsOf(list [][]byte, data []byte) [][]byte {
	for i := 0; ; {
		at := bytes.Index(data[i:], []byte(`id":"`))
		if at < 0 {
			return list
		}
		i += at + len(`id":"`)
		v := data[i : i+stringEnd(data[i:])]
		name := data[max(0, i-len(`"item_id":"`)) : i-len(`":"`)]
		i += len(v)
		if !bytes.HasSuffix(name, []byte(`"id`)) && !bytes.HasSuffix(name, []byte(`"item_id`)) && !bytes.HasSuffix(name, []byte(`"call_id`)) || len(v) < 4 {
			continue
		}
		if !has(list, v) {
			list = append(list, append([]byte(nil), v...))
		}
	}
}

func has(list [][]byte, v []byte) bool {
	for _, o := range list {
		if bytes.Equal(o, v) {
			return true
		}
	}
	return false
}

// enter puts an event behind a log, with the lane and the ids that belong to it.
func enter(log, lane []byte, ids [][]byte, kind, data []byte) (_, _ []byte, _ [][]byte, from, to int) {
	var room [160]byte
	here, from, to := pieceOf(room[:0], kind, data)
	switch {
	case string(kind) == "ping":
	case from == 0:
		log, lane, ids = append(log, markOf(kind, data)...), lane[:0], idsOf(ids, data)
	default:
		if !bytes.Equal(here, lane) {
			log, lane = append(append(append(log, markText), here...), markText), append(lane[:0], here...)
		}
		log = append(log, data[from:to]...)
	}
	return log, lane, ids, from, to
}

// keep enters an event that is relayed.
func (n *namedEvents) keep(kind, data []byte) {
	n.log, n.lane, n.ids, _, _ = enter(n.log, n.lane, n.ids, kind, data)
}

// replay compares an event of an answer that is given again. It reports whether
// the event is to be relayed, and whether the answer is still the same.
func (n *namedEvents) replay(o *Out, at int, kind, data []byte) (relay, same bool) {
	if string(kind) == "ping" {
		return !n.behind(), true
	}
	was, from, to := len(n.got), 0, 0
	n.got, n.gotLane, n.gotIDs, from, to = enter(n.got, n.gotLane, n.gotIDs, kind, data)
	end := min(len(n.got), len(n.log))
	if was < end && !bytes.Equal(n.got[was:end], n.log[was:end]) || was < len(n.log) && len(n.got) > len(n.log) && from == 0 {
		return false, false
	}
	if len(n.got) <= len(n.log) {
		return false, true
	}
	if old := to - from - (len(n.got) - len(n.log)); was < len(n.log) && old > 0 {
		ev := o.B[at:]
		offset := bytes.Index(ev, data)
		o.B = append(o.B[:at+offset+from], o.B[at+offset+from+old:]...)
	}
	n.rename(o, at)
	return true, true
}

// rename replaces the ids of the event at the end of o by those that the client
// knows.
func (n *namedEvents) rename(o *Out, at int) {
	ev := append([]byte(nil), o.B[at:]...)
	for i, id := range n.gotIDs {
		if i < len(n.ids) && !bytes.Equal(id, n.ids[i]) {
			ev = bytes.ReplaceAll(ev, quoted(id), quoted(n.ids[i]))
		}
	}
	o.B = append(o.B[:at], ev...)
}

func quoted(id []byte) []byte { return append(append([]byte{'"'}, id...), '"') }

// renumber gives an event of a responses stream the number behind the last, and
// the answer's date.
func (s *Stream) renumber(o *Out, at int, data []byte) {
	if s.a.API != Responses {
		return
	}
	v, ok := wire.Field(data, `"sequence_number"`)
	if !ok {
		return
	}
	if s.way == Again {
		s.names.seq++
		s.put(o, at, `"sequence_number"`, strconv.AppendInt(nil, s.names.seq, 10))
		if s.created != 0 && bytes.Contains(data, []byte(`"created_at"`)) {
			s.put(o, at, `"created_at"`, strconv.AppendInt(nil, s.created, 10))
		}
		return
	}
	s.names.seq, _ = strconv.ParseInt(string(v), 10, 64)
}
