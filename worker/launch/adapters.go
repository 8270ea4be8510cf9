package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"roundhouse/kernels"
	"roundhouse/worker"
	"roundhouse/worker/lora"
	"roundhouse/worker/model"
)

// Adapters are what --enable-lora and its companions ask for.
type Adapters struct {
	Enabled bool
	Modules []AdapterModule // loaded at the start
	Loras   int             // --max-loras
	CPU     int             // --max-cpu-loras; 0: not named
	Rank    int             // --max-lora-rank; 0: not named
	Runtime bool            // may be loaded while the worker runs
}

// AdapterModule is one of --lora-modules.
type AdapterModule struct {
	Name string `json:"name"`
	Path string `json:"path"`
	Base string `json:"base_model_name"`
}

// defaultRank is vLLM's --max-lora-rank.
const defaultRank = 16

// adapterSetters are of adapters.
func adapterSetters() map[string]setter {
	return map[string]setter{
		"enable-lora":   flag(func(o *Options) *bool { return &o.Adapters.Enabled }),
		"lora-modules":  adapterModule,
		"max-loras":     number(func(o *Options) *int { return &o.Adapters.Loras }, 1),
		"max-cpu-loras": number(func(o *Options) *int { return &o.Adapters.CPU }, 1),
		"max-lora-rank": func(o *Options, v string) error {
			if err := number(func(o *Options) *int { return &o.Adapters.Rank }, 1)(o, v); err != nil || o.Adapters.Rank > kernels.MostRank {
				return fmt.Errorf("%q; want a number from 1 to %d", v, kernels.MostRank)
			}
			return nil
		},
	}
}

// adapterModule reads one of --lora-modules: name=path, or JSON.
func adapterModule(o *Options, v string) error {
	var m AdapterModule
	if name, path, ok := strings.Cut(v, "="); ok && !strings.HasPrefix(strings.TrimSpace(v), "{") {
		m.Name, m.Path = name, path
	} else {
		d := json.NewDecoder(strings.NewReader(v))
		d.DisallowUnknownFields()
		if err := d.Decode(&m); err != nil {
			return fmt.Errorf("%.80q: %w; want name=path, or JSON with name, path and base_model_name", v, err)
		}
	}
	if m.Name == "" || m.Path == "" {
		return fmt.Errorf("%.80q: want a name and a path", v)
	}
	o.Adapters.Modules = append(o.Adapters.Modules, m)
	return nil
}

// check compares what is asked for with itself.
func (a *Adapters) check(served []string) error {
	if !a.Enabled {
		if len(a.Modules) > 0 {
			return fmt.Errorf("--lora-modules needs --enable-lora")
		}
		return nil
	}
	for i, m := range a.Modules {
		if slices.Contains(served, m.Name) {
			return fmt.Errorf("--lora-modules: %s is the name of the model itself", m.Name)
		}
		if slices.ContainsFunc(a.Modules[:i], func(o AdapterModule) bool { return o.Name == m.Name }) {
			return fmt.Errorf("--lora-modules names %s twice", m.Name)
		}
	}
	return nil
}

// room is the slots for adapters: all that are named lie in memory at once.
func (a *Adapters) room() model.AdapterRoom {
	if !a.Enabled {
		return model.AdapterRoom{}
	}
	r := model.AdapterRoom{Slots: max(a.Loras, a.CPU, len(a.Modules), 1), Rank: a.Rank}
	if r.Rank == 0 {
		r.Rank = defaultRank
	}
	return r
}

// prepare tells a model how it is to be kept, before anything is planned.
func prepare(o *Options, m *model.Model) error {
	if o.HeadDType == "bfloat16" {
		m.WideHead()
	}
	if !strings.HasPrefix(o.Device, "xpu") {
		m.FineGroups()
	}
	room := o.Adapters.room()
	if room.Slots == 0 {
		return nil
	}
	if err := m.MakeRoom(room); err != nil {
		return fmt.Errorf("--enable-lora: %w", err)
	}
	return nil
}

// loadAdapter fills a slot with the adapter at a path: a folder, or a name in
// the local cache.
func (m *memory) loadAdapter(slot int, path string) (err error) {
	dir, err := adapterFolder(path, m.o.Caches)
	if err != nil {
		return err
	}
	a, err := lora.Open(os.DirFS(dir))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if err := m.adapters.Load(slot, a); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	m.log.Info("adapter in its slot", "path", path, "slot", slot, "rank", a.Rank(), "linears", len(a.Modules))
	return nil
}

// adapterFolder resolves the path of an adapter.
func adapterFolder(path string, caches []string) (string, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return path, nil
	}
	dir, err := findModel(path, "", caches)
	if err != nil {
		return "", errors.New(strings.TrimPrefix(err.Error(), "--model "))
	}
	return dir, nil
}

// preload loads the adapters that the start names.
func preload(e *worker.Engine, a *Adapters) error {
	for _, m := range a.Modules {
		if err := e.Preload(worker.Adapter{Name: m.Name, Path: m.Path, Base: m.Base}); err != nil {
			return fmt.Errorf("--lora-modules %s: %w", m.Name, err)
		}
	}
	return nil
}
