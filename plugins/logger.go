package plugins

import (
	"context"
	"io"
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// logger joins a plugin's lines to ours, with their levels, a hundred a second at
// most: a plugin that floods its standard error fills nobody's disk.
type logger struct {
	to   *slog.Logger
	name string
	rate *lineRate
}

// lineRate is shared by all loggers that descend from one.
type lineRate struct {
	mu      sync.Mutex
	second  int64
	lines   int
	dropped int
}

const linesPerSecond = 100

func newLogger(to *slog.Logger) *logger { return &logger{to: to, rate: &lineRate{}} }

// allow counts a line; first is how many were dropped before it.
func (r *lineRate) allow(now time.Time) (ok bool, dropped int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := now.Unix(); s != r.second {
		r.second, r.lines = s, 0
		dropped, r.dropped = r.dropped, 0
	}
	if r.lines >= linesPerSecond {
		r.dropped++
		return false, 0
	}
	r.lines++
	return true, dropped
}

func (l *logger) log(level slog.Level, msg string, args ...any) {
	ok, dropped := l.rate.allow(time.Now())
	if dropped > 0 {
		l.to.Warn("plugin wrote too much; lines were dropped", "lines", dropped)
	}
	if ok {
		l.to.Log(context.Background(), level, msg, args...)
	}
}

var levels = map[hclog.Level]slog.Level{
	hclog.Trace: slog.LevelDebug - 4, hclog.Debug: slog.LevelDebug, hclog.Info: slog.LevelInfo,
	hclog.Warn: slog.LevelWarn, hclog.Error: slog.LevelError,
}

// The methods that hclog.Logger asks for.

func (l *logger) Log(level hclog.Level, msg string, args ...any) { l.log(levels[level], msg, args...) }
func (l *logger) Trace(msg string, args ...any)                  { l.log(levels[hclog.Trace], msg, args...) }
func (l *logger) Debug(msg string, args ...any)                  { l.log(slog.LevelDebug, msg, args...) }
func (l *logger) Info(msg string, args ...any)                   { l.log(slog.LevelInfo, msg, args...) }
func (l *logger) Warn(msg string, args ...any)                   { l.log(slog.LevelWarn, msg, args...) }
func (l *logger) Error(msg string, args ...any)                  { l.log(slog.LevelError, msg, args...) }

func (l *logger) enabled(level slog.Level) bool { return l.to.Enabled(context.Background(), level) }

func (l *logger) IsTrace() bool { return l.enabled(levels[hclog.Trace]) }
func (l *logger) IsDebug() bool { return l.enabled(slog.LevelDebug) }
func (l *logger) IsInfo() bool  { return l.enabled(slog.LevelInfo) }
func (l *logger) IsWarn() bool  { return l.enabled(slog.LevelWarn) }
func (l *logger) IsError() bool { return l.enabled(slog.LevelError) }

func (l *logger) ImpliedArgs() []any { return nil }
func (l *logger) Name() string       { return l.name }

func (l *logger) With(args ...any) hclog.Logger {
	return &logger{to: l.to.With(args...), name: l.name, rate: l.rate}
}

func (l *logger) Named(name string) hclog.Logger      { return &logger{to: l.to, name: name, rate: l.rate} }
func (l *logger) ResetNamed(name string) hclog.Logger { return l.Named(name) }

// The level is the one of the log that the lines join.
func (l *logger) SetLevel(hclog.Level) {}

func (l *logger) GetLevel() hclog.Level {
	for _, h := range []hclog.Level{hclog.Trace, hclog.Debug, hclog.Info, hclog.Warn} {
		if l.enabled(levels[h]) {
			return h
		}
	}
	return hclog.Error
}

func (l *logger) StandardLogger(o *hclog.StandardLoggerOptions) *log.Logger {
	return log.New(l.StandardWriter(o), "", 0)
}

func (l *logger) StandardWriter(*hclog.StandardLoggerOptions) io.Writer { return lineWriter{l} }

// lineWriter logs what is written to it, line by line.
type lineWriter struct{ l *logger }

func (w lineWriter) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		w.l.Info(strings.TrimRight(line, "\r\n"))
	}
	return len(p), nil
}
