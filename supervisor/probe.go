package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"roundhouse/worker/api"
)

// How workers are asked for their health.
const (
	probeYoung   = 100 * time.Millisecond // between two probes of one that is not yet healthy
	probeSettled = time.Second
	probeTimeout = 5 * time.Second
	warmTimeout  = 5 * time.Minute
)

// probe is what is known of one generation of a worker from asking it. It
// belongs to the loop; its goroutine only tells.
type probe struct {
	url        string
	key        string
	generation uint64
	cancel     context.CancelFunc

	healthy   bool
	unhealthy string
	last      time.Time // the last answer
	began     time.Time
	ours      *bool // speaks our status stream; nil: not known yet
	models    []string
	warmed    bool
	warmError string
	adapting  adapting
}

// finding is what a probe's goroutine tells the loop.
type finding struct {
	healthy bool
	why     string
	ours    *bool
	models  []string
}

// watchHealth asks a worker again and again until ctx ends.
func watchHealth(ctx context.Context, client *http.Client, url, key string, tell func(finding)) {
	known := false
	for {
		f := finding{}
		err := getOK(ctx, client, url+"/health", key)
		if ours(err) { // which says nothing of the worker
			select {
			case <-ctx.Done():
				return
			case <-time.After(probeSettled):
			}
			continue
		}
		if err != nil {
			f.why = err.Error()
		} else {
			f.healthy = true
		}
		if f.healthy && !known {
			f.ours = speaksStatus(ctx, client, url, key)
			f.models, _ = servedModels(ctx, client, url, key) // asked again in the warm-up, where it matters
			known = true
		}
		if ctx.Err() != nil {
			return
		}
		tell(f)
		wait := probeYoung
		if f.healthy {
			wait = probeSettled
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// ours reports whether a worker could not be asked for want of something on our side:
// files, memory or ports.
func ours(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EADDRNOTAVAIL} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// get asks a worker with its key and a time limit.
func get(ctx context.Context, client *http.Client, url, key string) (*http.Response, context.CancelFunc, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := client.Do(req)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return res, cancel, nil
}

func getOK(ctx context.Context, client *http.Client, url, key string) error {
	res, cancel, err := get(ctx, client, url, key)
	if err != nil {
		return err
	}
	defer cancel()
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20)) // lets the connection be used again
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET /health: %s", res.Status)
	}
	return nil
}

// speaksStatus reports whether a worker streams our status report.
func speaksStatus(ctx context.Context, client *http.Client, url, key string) *bool {
	res, cancel, err := get(ctx, client, url+api.StatusPath, key)
	if err != nil {
		return nil
	}
	defer cancel()
	defer res.Body.Close()
	ours := res.StatusCode == http.StatusOK
	return &ours
}

// servedModels asks which models a worker serves.
func servedModels(ctx context.Context, client *http.Client, url, key string) ([]string, error) {
	res, cancel, err := get(ctx, client, url+"/v1/models", key)
	if err != nil {
		return nil, err
	}
	defer cancel()
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET /v1/models: %s", res.Status)
	}
	var list struct{ Data []struct{ ID string } }
	if err := json.NewDecoder(io.LimitReader(res.Body, 4<<20)).Decode(&list); err != nil {
		return nil, fmt.Errorf("GET /v1/models: %w", err)
	}
	var out []string
	for _, m := range list.Data {
		out = append(out, m.ID)
	}
	return out, nil
}

// warm makes sure that a worker serves the right models and asks it for one
// real completion, the first of which is often slow.
func warm(ctx context.Context, client *http.Client, url, key string, want []string) error {
	models, err := servedModels(ctx, client, url, key)
	if err != nil {
		return err
	}
	for _, m := range want {
		if !slices.Contains(models, m) {
			return fmt.Errorf("it serves %s and not %q, which served_model_name asks for", strings.Join(models, ", "), m)
		}
	}
	if len(models) == 0 {
		return fmt.Errorf("it serves no model")
	}
	model := models[0]
	if len(want) > 0 {
		model = want[0]
	}
	body, err := json.Marshal(map[string]any{"model": model, "prompt": "Hello", "max_tokens": 4, "temperature": 0})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, warmTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return err
	}
	// An engine for embeddings or the like has no completions; that it says so
	// itself is answer enough.
	if res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusMethodNotAllowed || res.StatusCode == http.StatusNotImplemented {
		return nil
	}
	var answer struct{ Choices []json.RawMessage }
	if res.StatusCode != http.StatusOK || json.Unmarshal(data, &answer) != nil || len(answer.Choices) == 0 {
		return fmt.Errorf("a completion was answered by %s: %s", res.Status, clip(data, 300))
	}
	return nil
}

func clip(data []byte, n int) string {
	if len(data) > n {
		return string(data[:n]) + "…"
	}
	return string(bytes.TrimSpace(data))
}
