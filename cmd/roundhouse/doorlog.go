package main

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"

	"roundhouse/configs"
)

// doorLog writes a door's log as the worker set in force wants it: a door that a
// supervisor has started reads no configuration file of its own.
type doorLog struct {
	out io.Writer
	cfg *atomic.Pointer[configs.Log]
	as  []func(slog.Handler) slog.Handler // the attributes and groups of all its lines
}

// newDoorLog makes a log that follow changes later.
func newDoorLog(out io.Writer, cfg configs.Log) *doorLog {
	l := &doorLog{out: out, cfg: &atomic.Pointer[configs.Log]{}}
	l.follow(cfg)
	return l
}

// follow has the next lines written as cfg says.
func (l *doorLog) follow(cfg configs.Log) { l.cfg.Store(&cfg) }

// Enabled implements slog.Handler.
func (l *doorLog) Enabled(_ context.Context, level slog.Level) bool {
	return level >= l.cfg.Load().Level
}

// Handle implements slog.Handler.
func (l *doorLog) Handle(ctx context.Context, r slog.Record) error {
	h := logger(l.out, *l.cfg.Load()).Handler()
	for _, as := range l.as {
		h = as(h)
	}
	return h.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l *doorLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return l.with(func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) })
}

// WithGroup implements slog.Handler.
func (l *doorLog) WithGroup(name string) slog.Handler {
	return l.with(func(h slog.Handler) slog.Handler { return h.WithGroup(name) })
}

func (l *doorLog) with(as func(slog.Handler) slog.Handler) slog.Handler {
	return &doorLog{l.out, l.cfg, append(l.as[:len(l.as):len(l.as)], as)}
}
