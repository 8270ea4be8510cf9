package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"roundhouse/balancer/ledger"
	"roundhouse/worker/api"
)

// errNotOurs says that something answers at a worker's address, and not as a
// worker of ours does.
var errNotOurs = errors.New("there is no status stream: the worker is not one of ours")

// errNewer says that a worker of ours is newer than this door.
var errNewer = errors.New("the status protocol is not known")

// followStatus reads the status stream of a worker of ours, and asks for it
// again whenever it breaks. It returns when the worker is none of ours any more.
func (w *Worker) followStatus(ctx context.Context, f *Fleet) {
	var beside sync.WaitGroup
	defer beside.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()
	beside.Go(func() { w.watchAside(ctx, f) })
	wait := 50 * time.Millisecond
	for ctx.Err() == nil {
		began := time.Now()
		err := w.readStatus(ctx, f, func(s *api.Status) bool { w.takeStatus(f, s); return true })
		if ctx.Err() != nil {
			return
		}
		f.log.Debug("a worker's status stream ended", "worker", w.ID, "error", err)
		if errors.Is(err, errNotOurs) {
			w.turnsOut(f, false)
			return
		}
		f.Suspect(w, err)
		if time.Since(began) > 5*time.Second {
			wait = 50 * time.Millisecond
		}
		Sleep(ctx, wait)
		wait = min(2*wait, time.Second)
	}
}

// Sleep waits, or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// statusSilence is how long a status stream may say nothing: it says
// something every second.
const statusSilence = 5 * time.Second

// mostStatus bounds one line of a status stream.
const mostStatus = 16 << 20

// readStatus hands each status to take, until the stream breaks or take ends it.
func (w *Worker) readStatus(ctx context.Context, f *Fleet, take func(*api.Status) (on bool)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(statusSilence, cancel)
	defer silence.Stop()
	resp, err := w.ask(ctx, f, api.StatusPath)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 0, 4096), mostStatus)
	for first := true; lines.Scan(); first = false {
		silence.Reset(statusSilence)
		var s api.Status
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil || s.Protocol < 1 || s.Generation == "" {
			if first {
				return errNotOurs
			}
			return fmt.Errorf("a line of the status stream is not a status: %w", err)
		}
		if s.Protocol > api.StatusProtocol {
			f.log.Error("a worker speaks a newer status protocol than this door; update the door", "worker", w.ID, "protocol", s.Protocol, "known", api.StatusProtocol)
			Sleep(ctx, 10*time.Second)
			return fmt.Errorf("%w: %d", errNewer, s.Protocol)
		}
		if !take(&s) {
			return nil
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.EOF
}

// isOurs looks whether a worker has a status stream.
func (w *Worker) isOurs(ctx context.Context, f *Fleet) (ours bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	err := w.readStatus(ctx, f, func(*api.Status) bool { ours = true; return false })
	if err != nil {
		f.log.Debug("a worker shows no status", "worker", w.ID, "error", err)
	}
	return ours || errors.Is(err, errNewer)
}

// takeStatus enters one status.
func (w *Worker) takeStatus(f *Fleet, s *api.Status) {
	w.setModels(f, s.Models, s.Modalities)
	w.reachedNow(f, s.Generation)
	w.setEnding(f, s.Draining)
	w.capacity.Store(s.CapacityTokens)
	mine := s.Doors[f.ID]
	f.ledger.Report(w.Acct, w.Instance().Known, ledger.Report{
		At: f.now(), Capacity: s.CapacityTokens, MaxLen: int64(s.MaxModelLen), Used: s.UsedTokens, Own: mine.ResidentTokens, Others: f.Resident(s.Doors),
		Running: s.Running, Waiting: s.Waiting, PrefillTokens: s.PrefillTokens, HasPrefill: true,
		Progress: s.PromptTokens + s.GeneratedTokens, Draining: s.Draining,
	})
	if t := w.Pool.Prefix.Load(); t != nil {
		for _, door := range s.Doors { // equal prompts have equal digests, whichever door sent them
			if len(door.Evicted) > 0 {
				t.Drop(w.Slot, parseDigests(door.Evicted))
			}
		}
	}
	w.Pool.Pump(f)
}

// ask sends a GET to the worker by the door's client for its own errands.
func (w *Worker) ask(ctx context.Context, f *Fleet, path string) (*http.Response, error) {
	resp, err := w.get(ctx, f, path)
	if err != nil && err != errNotOurs && !errors.Is(err, context.Canceled) {
		w.unanswered(f, err)
	}
	return resp, err
}

func (w *Worker) get(ctx context.Context, f *Fleet, path string) (*http.Response, error) {
	resp, err := w.send(ctx, f, path)
	if err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		resp.Body.Close()
		if path == api.StatusPath {
			return nil, errNotOurs
		}
		return nil, fmt.Errorf("%s answered %s", path, resp.Status)
	default:
		resp.Body.Close()
		return nil, fmt.Errorf("%s answered %s", path, resp.Status)
	}
	return resp, nil
}

// send sends a GET to the worker, and returns whatever it answers.
func (w *Worker) send(ctx context.Context, f *Fleet, path string) (*http.Response, error) {
	up := w.Up.Load()
	scheme := "http://"
	if up.TLS {
		scheme = "https://"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+up.Host+up.Prefix+path, nil)
	if err != nil {
		return nil, err
	}
	if key := w.APIKey.Load(); key != nil && *key != "" {
		req.Header.Set("Authorization", "Bearer "+*key)
	}
	return f.errands.Do(req)
}

// parseDigests reads the digests that a worker reports, as hexadecimal.
func parseDigests(list []string) []uint64 {
	out := make([]uint64, 0, len(list))
	for _, s := range list {
		if v, err := strconv.ParseUint(s, 16, 64); err == nil {
			out = append(out, v)
		}
	}
	return out
}
