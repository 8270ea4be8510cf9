package balancer

import (
	"log/slog"
)

// logAccess writes one line for a request that has ended: sizes and times, no
// prompt, no answer, no key.
func (d *Door) logAccess(x *exchange) {
	if !x.v.set.Log.Access {
		return
	}
	now := d.now()
	worker := ""
	if w := x.worker.Load(); w != nil {
		worker = w.id
	}
	attrs := []slog.Attr{
		slog.String("request", x.id), slog.String("path", x.path), slog.Int("status", x.status), slog.String("outcome", x.outcome),
		slog.String("pool", x.pool.name), slog.String("worker", worker), slog.String("model", x.model),
		slog.Float64("seconds", float64(now-x.start)/1e9), slog.Float64("queue_seconds", float64(x.queued)/1e9),
	}
	if x.first > 0 {
		attrs = append(attrs, slog.Float64("ttft_seconds", float64(x.first-x.start)/1e9))
	}
	if x.usage.known {
		attrs = append(attrs, slog.Int64("prompt_tokens", x.usage.prompt), slog.Int64("cached_tokens", max(0, x.usage.cached)), slog.Int64("generated_tokens", x.usage.generated))
	}
	if x.key != nil {
		attrs = append(attrs, slog.String("key", x.key.name))
	}
	if x.resume > 0 {
		attrs = append(attrs, slog.Int("resumes", x.resume))
	}
	d.log.LogAttrs(d.ctx, slog.LevelInfo, "request", attrs...)
}
