package balancer

import (
	"encoding/json"
	"strconv"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/resume"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
	"roundhouse/worker/api"
)

// splice replaces one part of a body; From == To inserts.
type splice struct {
	at   wire.Span
	with []byte
}

// write sends the request to a worker, a short one as soon as its answer is
// waited for: built anew from parsed parts, with the body as it came but for
// what the door changes in it.
func (x *exchange) write(w *fleet.Worker, c *conn.Conn) error {
	x.booking.own = w.Own.Load()
	var few [4]splice
	body, path, cuts := x.payload.Body, x.asked.path, few[:0]
	if s := x.answer; s != nil && s.Way() == resume.ByIDs {
		body, path = s.Next().Body, s.Next().Path
	} else {
		if s != nil && w.Strict.Load() {
			s.WithoutIDs()
		}
		cuts = x.asked.splices(cuts, x.payload.Body, x.answer)
	}
	length := len(body)
	for _, s := range cuts {
		length += len(s.with) - (s.at.To - s.at.From)
	}
	hb := conn.LendHead()
	b := x.requestHead((*hb)[:0], w, c, path, length)
	if length <= 32<<10 {
		*hb = appendSpliced(b, body, cuts)
		return c.Sock.WriteFirst(hb, c.Rested)
	}
	defer conn.GiveHead(hb)
	_, err := c.Sock.Push(b, true)
	*hb = b[:0]
	from := 0
	for _, s := range cuts {
		if err == nil && s.at.From > from {
			_, err = c.Sock.Push(body[from:s.at.From], true)
		}
		if err == nil && len(s.with) > 0 {
			_, err = c.Sock.Push(s.with, true)
		}
		from = s.at.To
	}
	if err == nil {
		_, err = c.Sock.Write(body[from:])
	}
	return err
}

func appendSpliced(dst, body []byte, cuts []splice) []byte {
	from := 0
	for _, s := range cuts {
		dst = append(dst, body[from:s.at.From]...)
		dst = append(dst, s.with...)
		from = s.at.To
	}
	return append(dst, body[from:]...)
}

// requestHead writes the request line and the fields that a worker is to see.
func (x *exchange) requestHead(b []byte, w *fleet.Worker, c *conn.Conn, path string, length int) []byte {
	b = append(b, x.asked.method...)
	b = append(b, ' ')
	b = append(b, c.Up.Prefix...)
	b = append(b, path...)
	if x.asked.query != "" {
		b = append(b, '?')
		b = append(b, x.asked.query...)
	}
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, c.Up.Host...)
	if x.asked.method == "POST" {
		b = append(b, "\r\nContent-Type: "...)
		b = append(b, x.asked.ctype...)
		b = append(b, "\r\nContent-Length: "...)
		b = strconv.AppendInt(b, int64(length), 10)
	}
	if x.asked.accept != "" {
		b = append(b, "\r\nAccept: "...)
		b = append(b, x.asked.accept...)
	}
	b = append(b, "\r\n"+api.HeaderRequestID+": "...)
	b = append(b, x.asked.id...)
	if key := w.APIKey.Load(); key != nil && *key != "" {
		b = append(b, "\r\nAuthorization: Bearer "...)
		b = append(b, *key...)
	}
	if x.booking.own {
		b = append(b, "\r\n"+api.HeaderDoor+": "...)
		b = append(b, x.d.id...)
		b = append(b, "\r\n"+api.HeaderSeq+": "...)
		b = strconv.AppendUint(b, x.booking.Charge.Seq, 10)
		if x.asked.owner != "" {
			b = append(b, "\r\n"+api.HeaderOwner+": "...)
			b = append(b, x.asked.owner...)
		}
		if waited := (x.booking.sentAt - x.booking.came) / 1e6; waited > 0 {
			// It has aged here, or at a worker that failed it, and ages on there.
			b = append(b, "\r\n"+api.HeaderWaited+": "...)
			b = strconv.AppendInt(b, waited, 10)
		}
		b = x.booking.chunkField(b)
	}
	b = x.trace.fields(b, w.ID)
	b = filterFields(b, x.pass)
	return append(b, "\r\n\r\n"...)
}

// splices lists what the door changes in a body, in the order of the body. s is
// nil where the answer does not stream.
func (a *asked) splices(cuts []splice, body []byte, s *resume.Stream) []splice {
	p := &a.peek
	if a.kind == surface.Form || a.kind == surface.Stored {
		return cuts
	}
	var insert []byte
	if s != nil && s.IDs() {
		if !p.ReturnTokenIDs.Set() {
			insert = append(insert, `"return_token_ids":true,`...)
		}
		if !p.StreamOptions.Set() {
			insert = append(insert, `"stream_options":{"include_usage":true},`...)
		}
		if s.Way() == resume.ByField {
			r, err := json.Marshal(s.Field())
			if err != nil {
				panic("BUG: a resume cannot be encoded: " + err.Error())
			}
			insert = append(append(append(insert, `"roundhouse_resume":`...), r...), ',')
		}
	}
	if insert != nil {
		cuts = append(cuts, splice{wire.Span{From: p.Open, To: p.Open}, insert})
	}
	var tail [3]splice
	n := 0
	if p.ModelSpan.Set() && a.model != p.Model {
		tail[n] = splice{p.ModelSpan, wire.Quote(a.model)}
		n++
	}
	if s != nil && s.IDs() {
		if p.ReturnTokenIDs.Set() && !p.WantsTokenIDs {
			tail[n] = splice{p.ReturnTokenIDs, []byte("true")}
			n++
		}
		if p.StreamOptions.Set() && !p.IncludeUsage {
			tail[n] = splice{p.StreamOptions, withUsage(p.StreamOptions.Of(body))}
			n++
		}
	}
	for i := 1; i < n; i++ {
		for j := i; j > 0 && tail[j].at.From < tail[j-1].at.From; j-- {
			tail[j], tail[j-1] = tail[j-1], tail[j]
		}
	}
	return append(cuts, tail[:n]...)
}

// withUsage adds include_usage to the stream options that a client gave.
func withUsage(options []byte) []byte {
	m := map[string]json.RawMessage{}
	if json.Unmarshal(options, &m) != nil || m == nil {
		m = map[string]json.RawMessage{}
	}
	m["include_usage"] = json.RawMessage("true")
	b, err := json.Marshal(m)
	if err != nil {
		panic("BUG: stream options cannot be encoded: " + err.Error())
	}
	return b
}
