package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/configs"
	"roundhouse/measure/diagnose"
	"roundhouse/supervisor/health"
	"roundhouse/supervisor/journal"
)

// facts asks for what rules know besides metrics. A door that runs alone has no
// events.
func (a *client) facts(ctx context.Context) (*diagnose.Facts, error) {
	var c configs.Config
	if err := a.ask(ctx, http.MethodGet, "/api/config", nil, &c); err != nil {
		return nil, err
	}
	f := health.Facts(&c)
	var list []control.InFlight
	if err := a.ask(ctx, http.MethodGet, "/api/requests", nil, &list); err != nil {
		return nil, err
	}
	f.Requests = underWay(list)
	if text, err := a.text(ctx, "/api/events?follow=false&limit=2000"); err == nil {
		f.Starts = startsOf(text, time.Now().Add(-time.Hour))
	}
	return &f, nil
}

func underWay(list []control.InFlight) (out []diagnose.Request) {
	for _, r := range list {
		out = append(out, diagnose.Request{ID: r.ID, Pool: r.Pool, Key: r.Key, Prompt: r.Prompt})
	}
	return out
}

// startsOf are the starts among events that followed on a failure.
func startsOf(events string, since time.Time) (out []diagnose.Start) {
	for line := range strings.Lines(events) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data:")
		var e journal.Event
		if !ok || json.Unmarshal([]byte(data), &e) != nil || e.Kind != "started" || e.At.Before(since) {
			continue
		}
		for _, reason := range []string{"crashed", "hung", "does not answer"} {
			if strings.Contains(e.Text, reason) {
				out = append(out, diagnose.Start{Worker: e.Worker, At: e.At, Reason: reason})
			}
		}
	}
	return out
}

// readBundle reads what doctor --bundle has saved.
func readBundle(path string) (*diagnose.Recording, *diagnose.Facts, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, usageError("diagnose: %w", err)
	}
	defer file.Close()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, nil, fmt.Errorf("diagnose: %s: want a file of roundhouse doctor --bundle: %w", path, err)
	}
	type page struct {
		at   time.Time
		text string
	}
	var pages []page
	facts := &diagnose.Facts{}
	parts := map[string][]byte{}
	for t := tar.NewReader(zipped); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, fmt.Errorf("diagnose: %s: want a file of roundhouse doctor --bundle: %w", path, err)
		}
		text, err := io.ReadAll(io.LimitReader(t, 4*maxBundled))
		if err != nil {
			return nil, nil, fmt.Errorf("diagnose: %s: %w", path, err)
		}
		if name := strings.TrimPrefix(h.Name, "roundhouse/"); strings.HasPrefix(name, "metrics") {
			pages = append(pages, page{h.ModTime.UTC(), string(text)})
		} else {
			parts[name] = text
		}
	}
	var c configs.Config
	if readJSON(parts["config.json"], &c) || readJSON(parts["api/config.json"], &c) {
		*facts = health.Facts(&c)
	}
	var list []control.InFlight
	if readJSON(parts["api/requests.json"], &list) {
		facts.Requests = underWay(list)
	}
	slices.SortFunc(pages, func(x, y page) int { return x.at.Compare(y.at) })
	r := &diagnose.Recording{}
	for _, p := range pages {
		if strings.HasPrefix(p.text, "#") {
			r.Add(p.at, p.text)
		}
	}
	if len(r.Times) == 0 {
		return nil, nil, fmt.Errorf("diagnose: %s: %w", path, errNoMetrics)
	}
	facts.Starts = startsOf(string(parts["events.txt"]), r.Times[len(r.Times)-1].Add(-time.Hour))
	return r, facts, nil
}

// fromPrometheus asks a Prometheus for a time up to now, at most 500 moments of it.
func fromPrometheus(ctx context.Context, base string, span time.Duration) (*diagnose.Recording, error) {
	end := time.Now().Truncate(time.Second)
	step := max(5*time.Second, (span / 500).Truncate(time.Second))
	ask := url.Values{"query": {`{__name__=~"` + strings.Join(diagnose.Names(), "|") + `"}`}, "step": {strconv.Itoa(int(step.Seconds()))},
		"start": {strconv.FormatInt(end.Add(-span).Unix(), 10)}, "end": {strconv.FormatInt(end.Unix(), 10)}}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(base, "/")+"/api/v1/query_range", strings.NewReader(ask.Encode()))
	if err != nil {
		return nil, usageError("%w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, &codedError{exitUnreachable, err}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<30))
	if err != nil {
		return nil, err
	}
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Status != "success" {
		return nil, fmt.Errorf("it answers %d %s%.200s", res.StatusCode, answer.Error, bytes.TrimSpace(text))
	}
	r := &diagnose.Recording{}
	for at := end.Add(-span); !at.After(end); at = at.Add(step) {
		r.Times = append(r.Times, at.UTC())
	}
	for _, s := range answer.Data.Result {
		var at []time.Time
		var values []float64
		for _, v := range s.Values {
			when, _ := v[0].(float64)
			text, _ := v[1].(string)
			if x, err := strconv.ParseFloat(text, 64); err == nil {
				at, values = append(at, time.Unix(int64(math.Round(when)), 0).UTC()), append(values, x)
			}
		}
		name := s.Metric["__name__"]
		delete(s.Metric, "__name__")
		r.Put(name, s.Metric, at, values)
	}
	if len(answer.Data.Result) == 0 {
		return nil, errNoMetrics
	}
	return r, nil
}

// historyAnswer is what is read of GET /api/history.
type historyAnswer struct {
	From   time.Time `json:"from"`
	Step   int       `json:"step_seconds"`
	Series []struct {
		Name   string     `json:"name"`
		Pool   *string    `json:"pool"`
		Worker *string    `json:"worker"`
		Values []*float64 `json:"values"`
	} `json:"series"`
}

// history asks for the supervisor's series. They are figures, not counters, so that
// the rules about rates of preemptions, steps and errors stay without an answer.
func (a *client) history(ctx context.Context, span time.Duration) (*diagnose.Recording, error) {
	pools, err := a.poolNames(ctx)
	if err != nil {
		return nil, err
	}
	r := &diagnose.Recording{}
	for _, pool := range pools {
		for _, worker := range []string{"", "*"} {
			q := url.Values{"range": {span.String()}, "points": {"720"}, "pool": {pool}}
			if worker != "" {
				q.Set("worker", worker)
			}
			var h historyAnswer
			if err := a.ask(ctx, http.MethodGet, "/api/history?"+q.Encode(), nil, &h); err != nil {
				return nil, err
			}
			h.put(r)
		}
	}
	if len(r.Times) == 0 {
		return nil, errNoMetrics
	}
	return r, nil
}

func (a *client) poolNames(ctx context.Context) (names []string, err error) {
	_, pools, err := a.pools(ctx)
	for _, p := range pools {
		names = append(names, p.Name)
	}
	return names, err
}

// put adds a history's series under the names of the metrics that they are made of.
func (h *historyAnswer) put(r *diagnose.Recording) {
	var times []time.Time
	for _, s := range h.Series {
		for i := len(times); i < len(s.Values); i++ {
			times = append(times, h.From.Add(time.Duration(i*h.Step)*time.Second))
		}
	}
	if len(r.Times) == 0 {
		r.Times = times
	}
	for _, s := range h.Series {
		values := make([]float64, len(s.Values))
		for i, v := range s.Values {
			if values[i] = math.NaN(); v != nil {
				values[i] = *v
			}
		}
		at := times[:len(values)]
		switch {
		case s.Worker != nil:
			pool, name, _ := strings.Cut(*s.Worker, "/")
			door, own := map[string]string{"pool": pool, "worker": name}, map[string]string{"worker": *s.Worker}
			switch s.Name {
			case "kv_usage":
				r.Put("vllm:kv_cache_usage_perc", own, at, values)
			case "in_flight":
				r.Put("roundhouse_in_flight_requests", door, at, values)
				r.Put("vllm:num_requests_running", own, at, values)
			case "waiting":
				r.Put("vllm:num_requests_waiting", own, at, values)
			case "memory_bytes":
				r.Put("roundhouse_worker_memory_bytes", door, at, values)
			case "device_busy":
				r.Put("roundhouse_device_utilization_ratio", own, at, values)
			case "ready":
				r.Put("roundhouse_worker_state", map[string]string{"pool": pool, "worker": name, "state": "ready"}, at, values)
			}
		case s.Pool != nil && s.Name == "waiting":
			r.Put("roundhouse_queue_requests", map[string]string{"pool": *s.Pool}, at, values)
		}
	}
}
