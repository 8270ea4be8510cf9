package balancer

import (
	"log/slog"
	"time"

	"roundhouse/balancer/lines"
)

// logAccess writes one line for a request that has ended: sizes and times, no
// prompt, no answer, no key. It has the form of the rest of the log, and is
// encoded here because that costs no allocation.
func (d *common) logAccess(v *view, a *asked, r *record) {
	if d.access == nil || v.set.Log.Level > slog.LevelInfo {
		return
	}
	lent := accessLines.Get().(*[]byte)
	defer accessLines.Put(lent)
	l := lines.Begin((*lent)[:0], v.set.Log.Format == "json", a.wall.Add(time.Duration(r.ended-a.start)))
	l.Text("request", a.id)
	if a.client.IsValid() {
		l.Name("client")
		l.Quoted(func(b []byte) []byte { return a.client.AppendTo(b) })
	}
	l.Text("path", a.path)
	l.Number("status", int64(r.status))
	l.Text("outcome", r.outcome)
	l.Text("pool", a.pool.Name)
	l.Text("worker", r.worker)
	l.Text("model", a.model)
	l.Seconds("seconds", r.ended-a.start)
	l.Seconds("queue_seconds", r.queued)
	if r.first > 0 {
		l.Seconds("ttft_seconds", r.first-a.start)
	}
	if r.usage.Known {
		l.Number("prompt_tokens", r.usage.Prompt)
		l.Number("cached_tokens", max(0, r.usage.Cached))
		l.Number("generated_tokens", r.usage.Generated)
	}
	if a.key != nil {
		l.Text("key", a.key.Name)
	}
	if r.resumes.Load() > 0 {
		l.Number("resumes", int64(r.resumes.Load()))
	}
	*lent = l.End()
	d.access.Write(*lent)
}
