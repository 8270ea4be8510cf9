package configs

import (
	"log/slog"
	"math"
	"time"
)

// What a number of the file may be at most, where nothing tighter holds.
const maxCount = 1_000_000_000

// config reads the top of the file.
func (d *decoder) config(b *body, c *Config) {
	b.text("state_dir", &c.StateDir)
	b.block("log", func(b *body) {
		level := "info"
		b.choice("level", &level, "debug", "info", "warn", "error")
		c.Log.Level = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}[level]
		b.choice("format", &c.Log.Format, "text", "json")
		b.truth("access", &c.Log.Access)
		b.end()
	})
	b.block("door", func(b *body) { d.door(b, &c.Door) })
	b.block("admin", func(b *body) {
		b.text("listen", &c.Admin.Listen)
		b.secret("token", &c.Admin.Token)
		b.secret("read_token", &c.Admin.ReadToken)
		b.choice("console", &c.Admin.Console, "full", "read_only", "off")
		b.end()
	})
	b.block("supervisor", func(b *body) {
		integer(b, "parallel", &c.Supervisor.Parallel, 1, 1024)
		b.end()
	})
	b.each("pool", func(name string, b *body) {
		pool := defaultPool(name)
		d.pool(b, &pool)
		c.Pools = append(c.Pools, pool)
	})
	b.each("route", func(name string, b *body) {
		route := Route{Name: name, Sticky: "none"}
		d.route(b, &route)
		c.Routes = append(c.Routes, route)
	})
	b.each("plugin", func(name string, b *body) {
		plugin := Plugin{Name: name, OnFailure: "closed"}
		b.choice("kind", &plugin.Kind, "policy", "filter", "driver", "notifier")
		b.text("path", &plugin.Path)
		b.text("sha256", &plugin.SHA256)
		b.choice("on_failure", &plugin.OnFailure, "closed", "open")
		b.text("user", &plugin.User)
		b.end()
		c.Plugins = append(c.Plugins, plugin)
	})
	b.block("otlp", func(b *body) {
		b.text("endpoint", &c.OTLP.Endpoint)
		b.end()
	})
	b.end()
}

const (
	millisecond = Duration(time.Millisecond)
	second      = Duration(time.Second)
)

func (d *decoder) door(b *body, c *Door) {
	b.text("listen", &c.Listen)
	b.text("policy", &c.Policy)
	b.size("memory", &c.Memory, 1<<20)
	b.choice("metrics", &c.Metrics, "listen", "admin", "off")
	b.block("tls", func(b *body) {
		c.TLS = &TLS{}
		b.text("cert", &c.TLS.Cert)
		b.text("key", &c.TLS.Key)
		b.end()
	})
	b.block("limits", func(b *body) { d.limits(b, &c.Limits) })
	b.block("queue", func(b *body) {
		integer(b, "max_requests", &c.Queue.MaxRequests, 1, maxCount)
		b.duration("max_wait", &c.Queue.MaxWait, millisecond)
		b.end()
	})
	b.block("retry", func(b *body) {
		integer(b, "attempts", &c.Retry.Attempts, 0, 100)
		b.share("budget", &c.Retry.Budget, 1)
		b.end()
	})
	b.block("resume", func(b *body) {
		b.truth("enabled", &c.Resume.Enabled)
		b.end()
	})
	b.block("batches", func(b *body) {
		integer(b, "concurrency", &c.Batches.Concurrency, 0, 10000)
		integer(b, "lines", &c.Batches.Lines, 1, maxCount)
		b.size("file", &c.Batches.File, 1<<10)
		b.size("storage", &c.Batches.Storage, 1<<10)
		b.duration("keep", &c.Batches.Keep, Duration(time.Hour))
		b.duration("window", &c.Batches.Window, Duration(time.Minute))
		b.end()
	})
	b.block("breaker", func(b *body) {
		integer(b, "failures", &c.Breaker.Failures, 1, maxCount)
		b.duration("open", &c.Breaker.Open, millisecond)
		b.end()
	})
	b.truth("http2", &c.HTTP2)
	b.duration("slow_start", &c.SlowStart, 0)
	b.block("log_requests", func(b *body) {
		c.LogRequests = &LogRequests{Keys: []string{"*"}, Body: 64 << 10, Size: 100 << 20, Files: 5}
		d.logRequests(b, c.LogRequests)
	})
	b.list("peers", &c.Peers)
	b.list("trusted_proxies", &c.TrustedProxies)
	b.list("proxy_protocol", &c.ProxyProtocol)
	b.block("cors", func(b *body) {
		b.list("origins", &c.CORS.Origins)
		b.end()
	})
	b.text("budget_timezone", &c.BudgetTimezone)
	b.each("key", func(name string, b *body) {
		key := NewKey(name)
		d.key(b, &key)
		c.Keys = append(c.Keys, key)
	})
	b.each("objective", func(name string, b *body) {
		o := Objective{Name: name}
		integer(b, "priority", &o.Priority, -maxCount, maxCount)
		b.end()
		c.Objectives = append(c.Objectives, o)
	})
	b.end()
}

func (d *decoder) limits(b *body, c *Limits) {
	b.size("body", &c.Body, 1<<10)
	b.size("headers", &c.Headers, 1<<10)
	b.duration("header_read", &c.HeaderRead, millisecond)
	b.duration("body_idle", &c.BodyIdle, millisecond)
	b.size("upload_rate", &c.UploadRate, 1)
	b.size("upload", &c.Upload, 1<<10)
	b.duration("first_byte", &c.FirstByte, millisecond)
	b.duration("idle", &c.Idle, millisecond)
	integer(b, "connections", &c.Connections, 1, maxCount)
	integer(b, "streams", &c.Streams, 1, 10000)
	b.end()
}

func (d *decoder) key(b *body, c *Key) {
	b.list("sha256", &c.SHA256)
	b.list("models", &c.Models)
	b.list("pools", &c.Pools)
	integer(b, "requests_per_minute", &c.RequestsPerMinute, 0, maxCount)
	integer(b, "tokens_per_minute", &c.TokensPerMinute, 0, math.MaxInt64)
	integer(b, "max_concurrent", &c.MaxConcurrent, 0, maxCount)
	b.choice("priority", &c.Priority, "high", "normal", "low")
	integer(b, "weight", &c.Weight, 1, maxWeight)
	b.text("expires", &c.Expires)
	b.block("day_budget", func(b *body) { d.budget(b, &c.Day) })
	b.block("month_budget", func(b *body) { d.budget(b, &c.Month) })
	b.end()
}

func (d *decoder) budget(b *body, c *Budget) {
	integer(b, "requests", &c.Requests, 0, math.MaxInt64)
	integer(b, "tokens", &c.Tokens, 0, math.MaxInt64)
	integer(b, "tokens_in", &c.TokensIn, 0, math.MaxInt64)
	integer(b, "tokens_out", &c.TokensOut, 0, math.MaxInt64)
	b.end()
}

func (d *decoder) logRequests(b *body, c *LogRequests) {
	b.text("path", &c.Path)
	b.list("keys", &c.Keys)
	b.truth("bodies", &c.Bodies)
	b.size("body", &c.Body, 1)
	b.size("size", &c.Size, 1<<20)
	integer(b, "files", &c.Files, 1, 1000)
	b.end()
}

func (d *decoder) route(b *body, c *Route) {
	b.list("aliases", &c.Aliases)
	b.choice("sticky", &c.Sticky, "session", "user", "prefix", "none")
	b.each("target", func(model string, b *body) {
		target := Target{Model: model, Weight: 1}
		integer(b, "weight", &target.Weight, 0, 1_000_000)
		b.end()
		c.Targets = append(c.Targets, target)
	})
	b.text("fallback", &c.Fallback)
	b.truth("keep_name", &c.KeepName)
	b.each("canary", func(model string, b *body) {
		canary := newRouteCanary(model)
		b.shares("steps", &canary.Steps)
		integer(b, "min_requests", &canary.MinRequests, 1, maxCount)
		b.duration("hold", &canary.Hold, 0)
		b.truth("promote", &canary.Promote)
		b.end()
		if c.Canary != nil {
			b.d.failf(b.path, "route %q has two canaries, %q and %q: one model is on trial at a time", c.Name, c.Canary.Model, model)
		}
		c.Canary = &canary
	})
	b.end()
}
