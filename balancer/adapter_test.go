package balancer_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// load has a worker load an adapter, as its supervisor would.
func load(t *testing.T, w *sim.Worker, name, path string) {
	t.Helper()
	resp, err := http.Post(w.URL+"/v1/load_lora_adapter", "application/json", strings.NewReader(fmt.Sprintf(`{"lora_name":%q,"lora_path":%q,"load_inplace":true}`, name, path)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
}

// TestAdapterIsThere has requests for an adapter go to workers that have it loaded and to
// no other, wait while it is still being loaded, and reach a worker soon after it has it.
func TestAdapterIsThere(t *testing.T) {
	for _, own := range []bool{false, true} {
		t.Run(map[bool]string{false: "vllm", true: "ours"}[own], func(t *testing.T) {
			workers := []*sim.Worker{sim.New(sim.Options{Words: 2, Runtime: true, Own: own}), sim.New(sim.Options{Words: 2, Runtime: true, Own: own})}
			r := newRig(t, workers, func(s *control.WorkerSet) { s.Pools[0].Adapters = []string{"sql"} })
			ask := func(model string) {
				t.Helper()
				if resp, text := r.post("/v1/completions", fmt.Sprintf(`{"model":%q,"prompt":"p"}`, model)); resp.StatusCode != 200 || !strings.Contains(text, fmt.Sprintf(`"model":%q`, model)) {
					t.Fatalf("%s: %d %s", model, resp.StatusCode, text)
				}
			}
			early := make(chan string, 1)
			go func() {
				_, text := r.post("/v1/completions", `{"model":"sql","prompt":"early"}`)
				early <- text
			}()
			r.until("it waits", func() bool { return len(r.door.Queued()) == 1 })
			load(t, workers[1], "sql", "/adapters/sql")
			if text := <-early; !strings.Contains(text, "sql0 sql1") {
				t.Errorf("a request that came before its adapter: %s", text)
			}
			for range 10 {
				ask("sql")
				ask("sim")
			}
			for _, body := range workers[0].Bodies() {
				if strings.Contains(body, `"sql"`) {
					t.Fatal("a request for the adapter came to the worker without it")
				}
			}
			if len(workers[0].Bodies()) == 0 {
				t.Error("the worker without the adapter got none of the others")
			}
			load(t, workers[0], "sql", "/adapters/sql")
			r.until("the other has it, too", func() bool {
				ask("sql")
				return strings.Contains(strings.Join(workers[0].Bodies(), ""), `"sql"`)
			})
		})
	}
}

// TestAdapterRoute has a route go on with its other targets while an adapter is not
// loaded, and come back to it.
func TestAdapterRoute(t *testing.T) {
	w := sim.New(sim.Options{Words: 2, Runtime: true})
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) {
		s.Pools[0].Adapters = []string{"sql"}
		s.Routes = []configs.Route{{Name: "chat", Sticky: "none", Targets: []configs.Target{{Model: "sql", Weight: 1_000_000}, {Model: "sim", Weight: 1}}}}
	})
	answers := func() string {
		resp, text := r.post("/v1/completions", `{"model":"chat","prompt":"p"}`)
		if resp.StatusCode != 200 {
			t.Fatal(resp.StatusCode, text)
		}
		return text
	}
	if text := answers(); !strings.Contains(text, `"model":"sim"`) {
		t.Errorf("before it is loaded: %s", text)
	}
	load(t, w, "sql", "/adapters/sql")
	r.until("the adapter serves", func() bool { return strings.Contains(answers(), `"model":"sql"`) })
}
