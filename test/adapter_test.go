package test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"roundhouse/test/adapter"
)

// TestAdapter: clients ask for an adapter by its name, through the door, of a pool
// whose workers have loaded it. It answers as itself, and the same before, while and
// after every worker is replaced.
func TestAdapter(t *testing.T) {
	t.Parallel()
	s := start(t, fmt.Sprintf(`
pool "chat" {
  driver  = "process"
  devices = "cpu"
  workers = 2
  engine {
    served_model_name = ["base"]
    args              = ["--enable-lora", "--lora-modules", "tuned=%s"]
  }
  rotation {
    drain_timeout = "60s"
    stop_grace    = "10s"
  }
}
`, adapter.Write(t, 1, 8, 2)))
	say := func(model string) (string, error) {
		body := fmt.Sprintf(`{"model":%q,"prompt":"The roundhouse is","temperature":0,"max_tokens":24,"ignore_eos":true}`, model)
		res, err := http.Post(s.Door+"/v1/completions", "application/json", strings.NewReader(body))
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		var a struct {
			Model   string
			Choices []struct{ Text string }
		}
		text, err := io.ReadAll(res.Body)
		if err != nil || json.Unmarshal(text, &a) != nil || len(a.Choices) != 1 || a.Model != model {
			return "", fmt.Errorf("%s of %s: %s %w", res.Status, model, text, err)
		}
		return a.Choices[0].Text, nil
	}
	want := map[string]string{}
	for _, model := range []string{"base", "tuned"} {
		text, err := say(model)
		if err != nil {
			t.Fatal(err)
		}
		want[model] = text
	}
	if want["base"] == want["tuned"] || want["tuned"] == "" {
		t.Fatalf("the adapter answers as the model does: %q", want)
	}
	var answers atomic.Int64
	var ending atomic.Bool
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			for n := i; !ending.Load(); n++ {
				model := []string{"base", "tuned"}[n%2]
				if text, err := say(model); err != nil || text != want[model] {
					t.Errorf("%s said %q, and in a rotation %q: %v", model, want[model], text, err)
					return
				}
				answers.Add(1)
			}
		})
	}
	before := s.known()
	if status, text := post(t, s.Admin+"/api/pools/chat/rotate", ""); status != 200 {
		t.Fatalf("rotate: %d %s", status, text)
	}
	poll(t, "the rotation is done", func() bool { _, state, _ := s.lastRotation(); return state == "done" }, s.out.String)
	ending.Store(true)
	clients.Wait()
	for i, w := range s.known() {
		if w.Generation == before[i].Generation {
			t.Errorf("%s was not replaced", w.ID)
		}
	}
	for model, text := range want {
		if now, err := say(model); err != nil || now != text {
			t.Errorf("%s said %q, and after the rotation %q: %v", model, text, now, err)
		}
	}
	res, err := http.Get(s.Door + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var list struct {
		Data []struct{ ID string }
	}
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil || fmt.Sprint(list.Data) != "[{base} {tuned}]" {
		t.Errorf("the models are %v (%v)", list.Data, err)
	}
	t.Logf("%d answers while both workers were replaced", answers.Load())
}
