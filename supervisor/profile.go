package supervisor

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/configs/workerid"
	"roundhouse/supervisor/core"
)

// The bounds of a profile. It costs the requests that run something, and an engine that
// is no other's takes minutes to write what it saw.
const (
	longestProfile = 60 * time.Second
	profileEnds    = 10 * time.Minute
	profileBytes   = 256 << 20
)

// ProfileCommand is the body of POST /api/workers/{pool}/{name}/profile; it may be empty.
type ProfileCommand struct {
	Seconds float64 `json:"seconds,omitempty"` // 0: 10
}

// ProfiledElsewhere is the answer of a profile that the engine has written itself.
type ProfiledElsewhere struct {
	Schema  int     `json:"schema"`
	Worker  string  `json:"worker"`
	Seconds float64 `json:"seconds"`
	Said    string  `json:"said"`
}

// profiler has workers profiled, one at a time.
type profiler struct {
	client *http.Client
	busy   sync.Mutex
}

// engineAt is a worker's engine as it is asked over HTTP.
type engineAt struct{ id, url, key string }

// serveProfile has a worker's engine profiled for some seconds. Ours answers with an
// archive, which is passed on; a vLLM writes into its own folder.
func (s *Supervisor) serveProfile(w http.ResponseWriter, r *http.Request) {
	pool, name := r.PathValue("pool"), r.PathValue("name")
	var ask ProfileCommand
	var at engineAt
	err := Body(r, &ask)
	took := time.Duration(cmp.Or(ask.Seconds, 10) * float64(time.Second))
	if err == nil && (took <= 0 || took > longestProfile) {
		err = fmt.Errorf("seconds is %g; want more than 0, at most %g", ask.Seconds, longestProfile.Seconds())
	}
	if err == nil {
		if asked := s.ask(r.Context(), func() { at, err = s.engineOf(pool, name) }); asked != nil {
			fail(w, http.StatusServiceUnavailable, asked.Error())
			return
		}
	}
	if err != nil {
		FailWith(w, err)
		return
	}
	if !s.profiler.busy.TryLock() {
		FailWith(w, core.Conflictf("another profile is being taken; they are taken one at a time"))
		return
	}
	defer s.profiler.busy.Unlock()
	by := control.Asker(r)
	s.tell(func() { s.events.noteBy(by, pool, at.id, "profile", "for "+took.String()) })
	s.profiler.serve(w, r, at, took)
}

// engineOf finds a worker's engine. It runs in the loop.
func (s *Supervisor) engineOf(pool, name string) (engineAt, error) {
	id := workerid.Of(pool, name)
	url, _, running := s.probed(id)
	if _, configured := s.plan.kinds[id]; !configured {
		return engineAt{}, fmt.Errorf("worker %q: %w", id, core.ErrUnknown)
	}
	if !running {
		return engineAt{}, core.Conflictf("%s does not run", id)
	}
	return engineAt{id, url, s.plan.kinds[id].config.APIKey.Reveal()}, nil
}

// serve takes one profile. It is ended whatever becomes of the asker.
func (p *profiler) serve(w http.ResponseWriter, r *http.Request, at engineAt, took time.Duration) {
	calm := min(took, 5*time.Second) // without a profile, to tell its cost
	before, err := p.rate(r.Context(), at, calm)
	if err == nil {
		err = p.start(r.Context(), at)
	}
	if err != nil {
		FailWith(w, err)
		return
	}
	during, failed := p.rate(r.Context(), at, took)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), profileEnds)
	defer cancel()
	res, err := p.post(ctx, at, "/stop_profile")
	if err = errors.Join(failed, err); err != nil {
		if res != nil {
			res.Body.Close()
		}
		FailWith(w, err)
		return
	}
	defer res.Body.Close()
	w.Header().Set("X-Roundhouse-Tokens-Before", strconv.FormatFloat(before, 'f', 1, 64))
	w.Header().Set("X-Roundhouse-Tokens-During", strconv.FormatFloat(during, 'f', 1, 64))
	if kind := res.Header.Get("Content-Type"); strings.HasPrefix(kind, "application/zip") {
		w.Header().Set("Content-Type", kind)
		_, _ = io.Copy(w, io.LimitReader(res.Body, profileBytes)) // the asker may be gone
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(ProfiledElsewhere{ // as above
		Schema: 1, Worker: at.id, Seconds: took.Seconds(),
		Said: "the engine has written the profile into the torch_profiler_dir of its --profiler-config, where it runs",
	})
}

// start begins a profile.
func (p *profiler) start(ctx context.Context, at engineAt) error {
	res, err := p.post(ctx, at, "/start_profile")
	if err == nil {
		res.Body.Close()
	}
	return err
}

// post asks an engine for what operates it, and fails unless that is done.
func (p *profiler) post(ctx context.Context, at engineAt, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at.url+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/zip, */*")
	if at.key != "" {
		req.Header.Set("Authorization", "Bearer "+at.key)
	}
	res, err := p.client.Do(req)
	if err != nil {
		return nil, core.Conflictf("%s: %v", at.id, err)
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10)) // what there is of it
	switch res.StatusCode {
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return nil, core.Conflictf(`%s was not started for profiles: give its pool's engine.args "--profiler-config", "{\"profiler\": \"torch\", \"torch_profiler_dir\": \"/tmp/profiles\"}", then roundhouse reload`, at.id)
	case http.StatusUnauthorized:
		return nil, core.Conflictf("%s asks for a key: give the worker's block the api_key of the engine", at.id)
	}
	return nil, core.Conflictf("%s answers %s: %s", at.id, res.Status, bytes.TrimSpace(text))
}

// rate waits, and returns how many tokens a second the engine generated meanwhile; 0 if
// it does not tell.
func (p *profiler) rate(ctx context.Context, at engineAt, wait time.Duration) (float64, error) {
	first, began := p.generated(ctx, at), time.Now()
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return max(0, p.generated(ctx, at)-first) / time.Since(began).Seconds(), nil
}

// generated is the engine's count of tokens; 0 if it does not tell.
func (p *profiler) generated(ctx context.Context, at engineAt) (sum float64) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.url+"/metrics", nil)
	if err != nil {
		return 0
	}
	if at.key != "" {
		req.Header.Set("Authorization", "Bearer "+at.key)
	}
	res, err := p.client.Do(req)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(io.LimitReader(res.Body, 16<<20))
	for lines.Scan() {
		if line := lines.Text(); strings.HasPrefix(line, "vllm:generation_tokens_total") {
			n, _ := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64) // another form tells nothing
			sum += n
		}
	}
	return sum
}
