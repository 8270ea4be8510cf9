package profile

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// The paths, as vLLM has them.
const (
	StartPath = "/start_profile"
	StopPath  = "/stop_profile"
)

// archive is the type of an answer that has the whole profile.
const archive = "application/zip"

// fail tells of an error, in OpenAI's shape.
func fail(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": err.Error(), "type": "BadRequestError", "param": nil, "code": status}}) // the asker may be gone
}

func statusOf(err error) int {
	switch {
	case errors.Is(err, ErrRuns), errors.Is(err, ErrNone):
		return http.StatusConflict
	case errors.Is(err, ErrStopped):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// ServeStart begins a profile. The body may have vLLM's profile_prefix,
// delay_iterations and max_iterations.
func (p *Profiler) ServeStart(w http.ResponseWriter, r *http.Request) {
	var f struct {
		Prefix string `json:"profile_prefix"`
		Delay  *int   `json:"delay_iterations"`
		Most   *int   `json:"max_iterations"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
	if err == nil && len(bytes.TrimSpace(body)) > 0 {
		err = json.Unmarshal(body, &f)
	}
	delay, most := p.settings.Delay, p.settings.Most
	if f.Delay != nil {
		delay = *f.Delay
	}
	if f.Most != nil {
		most = *f.Most
	}
	switch {
	case err != nil:
		fail(w, http.StatusBadRequest, errors.New("the body: want nothing, or {\"profile_prefix\": …, \"delay_iterations\": …, \"max_iterations\": …}"))
	case delay < 0 || most < 0:
		fail(w, http.StatusBadRequest, errors.New("delay_iterations and max_iterations are 0 or more"))
	case f.Prefix != "" && !prefixes.MatchString(f.Prefix):
		fail(w, http.StatusBadRequest, errPrefix(f.Prefix))
	default:
		if err := p.Start(r.Context(), f.Prefix, delay, most); err != nil {
			fail(w, statusOf(err), err)
			return
		}
		w.WriteHeader(http.StatusOK)
	}
}

// ServeStop ends the profile: as vLLM does, its files lie in the profiler's folder and
// the answer is empty. Whoever accepts application/zip gets them instead.
func (p *Profiler) ServeStop(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.Header.Get("Accept"), archive) {
		if _, err := p.Stop(r.Context()); err != nil {
			fail(w, statusOf(err), err)
			return
		}
		w.WriteHeader(http.StatusOK)
		return
	}
	var b bytes.Buffer
	if err := p.StopTo(r.Context(), &b); err != nil {
		fail(w, statusOf(err), err)
		return
	}
	w.Header().Set("Content-Type", archive)
	_, _ = w.Write(b.Bytes()) // the asker may be gone
}
