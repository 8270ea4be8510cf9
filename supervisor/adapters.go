package supervisor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"roundhouse/configs"
	"roundhouse/configs/workerid"
)

// How adapters are brought into a worker.
const (
	adapterLook    = 30 * time.Second // between two looks at a worker that has them all
	adapterAgain   = 10 * time.Second // after one that could not be loaded
	adapterTimeout = 5 * time.Minute  // of loading one, which may have to be fetched first
)

// adapting is how one generation of a worker was brought its adapters. It belongs to the
// loop.
type adapting struct {
	busy    bool
	settled bool // it was tried once
	want    []configs.Adapter
	tried   time.Time
	failed  string // why some are not loaded; empty: they are
}

// due reports whether a worker is to be asked for its adapters.
func (a *adapting) due(want []configs.Adapter, now time.Time) bool {
	wait := adapterLook
	if a.failed != "" {
		wait = adapterAgain
	}
	return !a.busy && (!a.settled || !slices.Equal(a.want, want) || now.Sub(a.tried) >= wait)
}

// tendAdapters has the workers that answer load the adapters of their pools, and unload
// those that no block names any more.
func tendAdapters(s *Supervisor) {
	now := s.clock.Now()
	for i := range s.plan.config.Pools {
		pool := &s.plan.config.Pools[i]
		gone := formerAdapters(s, pool)
		if len(pool.Adapters)+len(gone) == 0 {
			continue
		}
		for _, name := range s.workerNames(s.plan.pools[i]) {
			p := s.fleet.of(workerid.Of(pool.Name, name)).probe
			if p != nil && p.healthy && p.adapting.due(pool.Adapters, now) {
				adapt(s, workerid.Of(pool.Name, name), p, pool.Adapters, gone)
			}
		}
	}
}

// formerAdapters are the names that this supervisor has loaded into a pool's workers and
// that no block has any more. It remembers the present ones.
func formerAdapters(s *Supervisor, pool *configs.Pool) (gone []string) {
	known := s.memory.intent.Pools[pool.Name].Adapters
	all := slices.Clone(known)
	for _, a := range pool.Adapters {
		if !slices.Contains(all, a.Name) {
			all = append(all, a.Name)
		}
	}
	if len(all) > len(known) { // written before the first is loaded
		next := s.memory.intent.Clone()
		c := next.Pools[pool.Name]
		c.Adapters = all
		next.Pools[pool.Name] = c
		s.memory.remember(next)
	}
	for _, name := range all {
		if !slices.ContainsFunc(pool.Adapters, func(a configs.Adapter) bool { return a.Name == name }) {
			gone = append(gone, name)
		}
	}
	return gone
}

// adapt begins to bring a worker its adapters.
func adapt(s *Supervisor, id string, p *probe, want []configs.Adapter, gone []string) {
	p.adapting.busy = true
	s.group.Go(func() {
		a := adapter{s.client, p.url, p.key}
		did, models, err := a.settle(s.ctx, want, gone)
		if s.ctx.Err() != nil {
			return
		}
		s.tell(func() {
			was := p.adapting.failed
			p.adapting = adapting{settled: true, want: want, tried: s.clock.Now()}
			if models != nil {
				p.models = models
			}
			for _, text := range did {
				s.events.note(workerid.Pool(id), id, "adapter", text)
			}
			if err == nil {
				return
			}
			if p.adapting.failed = err.Error(); p.adapting.failed != was {
				s.events.note(workerid.Pool(id), id, "adapter", p.adapting.failed)
			}
		})
	})
}

// adapter asks one worker for its adapters.
type adapter struct {
	client   *http.Client
	url, key string
}

// settle has a worker serve the wanted adapters and none of those that are gone. It
// returns the changes, and the names that the worker serves then.
func (a adapter) settle(ctx context.Context, want []configs.Adapter, gone []string) (did, models []string, err error) {
	has, err := a.list(ctx)
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	note := func(err error, done string) {
		if err != nil {
			errs = append(errs, err)
			return
		}
		did = append(did, done)
	}
	for _, name := range gone {
		if c, there := has[name]; there && c.Parent != nil {
			note(a.post(ctx, "unload", name, "", false), fmt.Sprintf("%q is unloaded", name))
		}
	}
	for _, w := range want {
		c, there := has[w.Name]
		switch {
		case there && (c.Root == nil || *c.Root == w.Path):
		case there && c.Parent == nil:
			errs = append(errs, fmt.Errorf("adapter %q: the worker serves a model of that name", w.Name))
		default:
			note(a.load(ctx, w, there), fmt.Sprintf("%q is loaded from %s", w.Name, w.Path))
		}
	}
	if len(did) > 0 {
		has, err = a.list(ctx)
		errs = append(errs, err)
	}
	for name := range has {
		models = append(models, name)
	}
	slices.SortFunc(models, func(x, y string) int { return cmp.Compare(has[x].at, has[y].at) })
	return did, models, errors.Join(errs...)
}

// load loads an adapter, in the place of another of its name if there is one: at once if
// the worker can do that, else the old one first makes room.
func (a adapter) load(ctx context.Context, w configs.Adapter, there bool) error {
	err := a.post(ctx, "load", w.Name, w.Path, there)
	if err == nil || !there {
		return err
	}
	if err := a.post(ctx, "unload", w.Name, "", false); err != nil {
		return err
	}
	return a.post(ctx, "load", w.Name, w.Path, false)
}

// card is what a worker says of one name that it serves.
type card struct {
	ID     string
	Root   *string
	Parent *string // of an adapter
	at     int
}

// list asks what the worker serves.
func (a adapter) list(ctx context.Context) (map[string]card, error) {
	res, cancel, err := get(ctx, a.client, a.url+"/v1/models", a.key)
	if err != nil {
		return nil, err
	}
	defer cancel()
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET /v1/models: %s", res.Status)
	}
	var list struct{ Data []card }
	if err := json.NewDecoder(io.LimitReader(res.Body, 4<<20)).Decode(&list); err != nil {
		return nil, fmt.Errorf("GET /v1/models: %w", err)
	}
	out := make(map[string]card, len(list.Data))
	for i, c := range list.Data {
		c.at = i
		out[c.ID] = c
	}
	return out, nil
}

// post asks the worker to load or unload an adapter.
func (a adapter) post(ctx context.Context, verb, name, path string, inplace bool) error {
	ctx, cancel := context.WithTimeout(ctx, adapterTimeout)
	defer cancel()
	ask := map[string]any{"lora_name": name}
	if path != "" {
		ask["lora_path"] = path
	}
	if inplace {
		ask["load_inplace"] = true
	}
	body, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/v1/"+verb+"_lora_adapter", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if a.key != "" {
		req.Header.Set("Authorization", "Bearer "+a.key)
	}
	res, err := a.client.Do(req)
	if err != nil {
		return fmt.Errorf("adapter %q: %w", name, err)
	}
	defer res.Body.Close()
	said, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("adapter %q: %w", name, err)
	}
	if res.StatusCode == http.StatusOK {
		return nil
	}
	hint := ""
	if unknown := res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusMethodNotAllowed; unknown && verb == "load" {
		hint = "; it takes adapters where it was started with --enable-lora and " + configs.RuntimeAdapters + "=True"
	}
	return fmt.Errorf("adapter %q is not %sed: %s: %s%s", name, verb, res.Status, strings.TrimSpace(clip(said, 300)), hint)
}
