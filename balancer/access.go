package balancer

import (
	"log/slog"
)

// logAccess writes one line for a request that has ended: sizes and times, no
// prompt, no answer, no key.
func (d *Door) logAccess(a *asked, r *record) {
	attrs := []slog.Attr{
		slog.String("request", a.id), slog.String("path", a.path), slog.Int("status", r.status), slog.String("outcome", r.outcome),
		slog.String("pool", a.pool.name), slog.String("worker", r.worker), slog.String("model", a.model),
		slog.Float64("seconds", float64(r.ended-a.start)/1e9), slog.Float64("queue_seconds", float64(r.queued)/1e9),
	}
	if r.first > 0 {
		attrs = append(attrs, slog.Float64("ttft_seconds", float64(r.first-a.start)/1e9))
	}
	if r.usage.Known {
		attrs = append(attrs, slog.Int64("prompt_tokens", r.usage.Prompt), slog.Int64("cached_tokens", max(0, r.usage.Cached)), slog.Int64("generated_tokens", r.usage.Generated))
	}
	if a.key != nil {
		attrs = append(attrs, slog.String("key", a.key.name))
	}
	if r.resumes > 0 {
		attrs = append(attrs, slog.Int("resumes", r.resumes))
	}
	d.log.LogAttrs(d.ctx, slog.LevelInfo, "request", attrs...)
}
