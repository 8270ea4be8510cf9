package balancer

import (
	"time"
	"unicode/utf8"

	"roundhouse/balancer/memory"
	"roundhouse/balancer/requestlog"
)

// capture gathers what the log of requests writes of one; nil: nothing is written. Its
// memory is booked; where there is none left, texts end early.
type capture struct {
	log     *requestlog.Log
	memory  *memory.Bound
	booked  int64
	most    int // bytes of each body; 0: none is written
	request body
	answer  body
}

// body is the beginning of a request's or an answer's text.
type body struct {
	text []byte
	came int64
}

// captureOf starts to gather for a request, if its key's are written.
func captureOf(d *common, a *asked, sent []byte) *capture {
	name := ""
	if a.key != nil {
		name = a.key.Name
	}
	most, wanted := d.requests.Wants(name)
	if !wanted {
		return nil
	}
	c := &capture{log: &d.requests, memory: &d.memory, most: most}
	c.take(&c.request, sent)
	return c
}

// answered takes a piece of the answer.
func (c *capture) answered(b []byte) {
	if c != nil {
		c.take(&c.answer, b)
	}
}

func (c *capture) take(to *body, b []byte) {
	to.came += int64(len(b))
	n := min(len(b), c.most-len(to.text))
	if n <= 0 {
		return
	}
	if !c.memory.Take(int64(n)) {
		c.most = 0
		return
	}
	c.booked += int64(n)
	to.text = append(to.text, b[:n]...)
}

// end writes the line of a request that has ended.
func (c *capture) end(door string, a *asked, r *record) {
	if c == nil {
		return
	}
	line := requestlog.Line{Time: a.wall.UTC(), ID: a.id, Door: door, Method: a.method, Path: a.path, Model: a.model, Worker: r.worker, Status: r.status,
		Outcome: r.outcome, Error: r.code, Seconds: time.Duration(r.ended - a.start).Seconds(), Queued: time.Duration(r.queued).Seconds(), Resumes: int(r.resumes.Load())}
	if a.key != nil {
		line.Key = a.key.Name
	}
	if a.client.IsValid() {
		line.Client = a.client.String()
	}
	if a.pool != nil {
		line.Pool = a.pool.Name
	}
	if r.first > 0 {
		first := time.Duration(r.first - a.start).Seconds()
		line.First = &first
	}
	if u := r.usage; u.Known {
		cached := max(0, u.Cached)
		line.TokensIn, line.Cached, line.TokensOut = &u.Prompt, &cached, &u.Generated
	}
	if c.booked > 0 {
		line.Request, line.Answer = c.request.shown(), c.answer.shown()
	}
	c.log.Write(&line)
	c.memory.Give(c.booked)
}

// shown is the text as it is written: whole characters. What is no text is told by its
// length alone.
func (b *body) shown() *requestlog.Text {
	if b.came == 0 {
		return nil
	}
	text := b.text
	for n := 0; n < utf8.UTFMax && len(text) > 0 && !utf8.Valid(text[max(0, len(text)-utf8.UTFMax):]); n++ {
		text = text[:len(text)-1]
	}
	if !utf8.Valid(text) {
		text = nil
	}
	return &requestlog.Text{Text: string(text), Bytes: b.came, Cut: int64(len(text)) < b.came}
}
