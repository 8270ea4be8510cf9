package sim

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// What the path of an adapter tells a Worker of it, by any part of the path.
const (
	BrokenAdapter = "broken" // each of its answers is an error 500
	CurtAdapter   = "curt"   // its answers are two words long
	NoAdapter     = "absent" // nothing lies there
)

// adapters are what a Worker has loaded, by name. They are gone when it starts anew.
type adapters struct {
	mu    sync.Mutex
	paths map[string]string
	order []string
}

// find is where an adapter lies; ok is false where none of that name is loaded.
func (l *adapters) find(name string) (path string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	path, ok = l.paths[name]
	return path, ok
}

// Adapters are the names of the adapters that are loaded, in the order of their loading.
func (w *Worker) Adapters() []string {
	w.adapters.mu.Lock()
	defer w.adapters.mu.Unlock()
	return append([]string(nil), w.adapters.order...)
}

// forget unloads all.
func (l *adapters) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paths, l.order = map[string]string{}, nil
}

// invalid answers as vLLM does to what an operator asked for.
func invalid(rw http.ResponseWriter, status int, kind, message string) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	fmt.Fprintf(rw, `{"error":{"message":%q,"type":%q,"param":null,"code":%d}}`, message, kind, status)
}

// loadAdapter is vLLM's /v1/load_lora_adapter.
func (w *Worker) loadAdapter(rw http.ResponseWriter, r *http.Request) {
	var ask struct {
		Name    string `json:"lora_name"`
		Path    string `json:"lora_path"`
		Inplace bool   `json:"load_inplace"`
	}
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || ask.Name == "" || ask.Path == "" {
		invalid(rw, http.StatusBadRequest, "InvalidUserInput", "Both 'lora_name' and 'lora_path' must be provided.")
		return
	}
	if strings.Contains(ask.Path, NoAdapter) {
		invalid(rw, http.StatusNotFound, "NotFoundError", "Loading lora "+ask.Name+" failed: No adapter found for "+ask.Path)
		return
	}
	l := &w.adapters
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, there := l.paths[ask.Name]; there && !ask.Inplace {
		invalid(rw, http.StatusBadRequest, "InvalidUserInput", "The lora adapter '"+ask.Name+"' has already been loaded.")
		return
	} else if !there {
		l.order = append(l.order, ask.Name)
	}
	l.paths[ask.Name] = ask.Path
	io.WriteString(rw, "Success: LoRA adapter '"+ask.Name+"' added successfully.")
}

// unloadAdapter is vLLM's /v1/unload_lora_adapter.
func (w *Worker) unloadAdapter(rw http.ResponseWriter, r *http.Request) {
	var ask struct {
		Name string `json:"lora_name"`
	}
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || ask.Name == "" {
		invalid(rw, http.StatusBadRequest, "InvalidUserInput", "'lora_name' needs to be provided to unload a LoRA adapter.")
		return
	}
	l := &w.adapters
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, there := l.paths[ask.Name]; !there {
		invalid(rw, http.StatusNotFound, "NotFoundError", "The lora adapter '"+ask.Name+"' cannot be found.")
		return
	}
	delete(l.paths, ask.Name)
	l.order = append([]string(nil), without(l.order, ask.Name)...)
	io.WriteString(rw, "Success: LoRA adapter '"+ask.Name+"' removed successfully.")
}

func without(list []string, name string) (out []string) {
	for _, s := range list {
		if s != name {
			out = append(out, s)
		}
	}
	return out
}

// cards are the adapters as /v1/models has them.
func (w *Worker) cards() (text string) {
	l := &w.adapters
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range l.order {
		text += fmt.Sprintf(`,{"id":%q,"object":"model","root":%q,"parent":%q}`, name, l.paths[name], w.model())
	}
	return text
}

// adapted has an answer be its adapter's: it carries the adapter's name, and its words do.
// It reports whether there is an answer.
func (a *answer) adapted() bool {
	if !a.w.Runtime || a.b.Model == "" || a.b.Model == a.w.model() {
		return true
	}
	path, there := a.w.adapters.find(a.b.Model)
	switch {
	case !there:
		invalid(a.rw, http.StatusNotFound, "NotFoundError", "The model `"+a.b.Model+"` does not exist.")
		return false
	case strings.Contains(path, BrokenAdapter):
		invalid(a.rw, http.StatusInternalServerError, "InternalServerError", "the adapter does not fit")
		return false
	case strings.Contains(path, CurtAdapter):
		a.until = min(a.until, 2)
	}
	a.adapter = a.b.Model
	return true
}
