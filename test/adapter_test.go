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

// TestAdapter: clients ask for adapters by their names, through the door, of a pool whose
// workers have loaded one at their start and get another by the supervisor. Each answers as
// itself, and the same before, while and after every worker is replaced. Then a route tries
// the second one until it has all requests.
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
  adapter "tried" {
    path = %q
  }
  rotation {
    drain_timeout = "60s"
    stop_grace    = "10s"
  }
}
route "assistant" {
  sticky = "session"
  target "tuned" {}
  canary "tried" {
    steps        = [0.5, 0.8]
    min_requests = 10
    hold         = "0s"
  }
}
`, adapter.Write(t, 1, 8, 2), adapter.Write(t, 2, 8, 2)))
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
	for _, model := range []string{"base", "tuned", "tried"} {
		text, err := say(model)
		if err != nil {
			t.Fatal(err)
		}
		want[model] = text
	}
	if want["base"] == want["tuned"] || want["base"] == want["tried"] || want["tuned"] == want["tried"] || want["tuned"] == "" {
		t.Fatalf("two of them answer alike: %q", want)
	}
	var answers atomic.Int64
	var ending atomic.Bool
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			for n := i; !ending.Load(); n++ {
				model := []string{"base", "tuned", "tried"}[n%3]
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
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil || fmt.Sprint(list.Data) != "[{assistant} {base} {tried} {tuned}]" {
		t.Errorf("the models are %v (%v)", list.Data, err)
	}
	converse(t, s)
	t.Logf("%d answers while both workers were replaced", answers.Load())
}

// converse has conversations go on while the trial of the route "assistant" takes all its
// steps: none changes its model, and those who look at the admin API see it end well.
func converse(t *testing.T, s *system) {
	where := map[string]string{}
	turn := func(session string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Door+"/v1/completions", strings.NewReader(`{"model":"assistant","prompt":"a","max_tokens":2}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Session-Id", session)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var a struct{ Model string }
		if err := json.NewDecoder(res.Body).Decode(&a); err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res.Status, err)
		}
		if was, known := where[session]; known && was != a.Model {
			t.Fatalf("%s was at %s, and is at %s", session, was, a.Model)
		}
		where[session] = a.Model
	}
	state := func() string {
		var shown struct {
			Canaries []struct{ State, Model string }
		}
		res, err := http.Get(s.Admin + "/api/canaries")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(&shown); err != nil || len(shown.Canaries) != 1 || shown.Canaries[0].Model != "tried" {
			t.Fatalf("the canaries are %+v (%v)", shown, err)
		}
		return shown.Canaries[0].State
	}
	for i := 0; state() == "running"; i++ {
		if i == 500 {
			t.Fatal("the trial does not end")
		}
		turn(fmt.Sprint("session ", i))
		turn(fmt.Sprint("session ", i/2))
	}
	if state() != "promoted" {
		t.Fatalf("the trial has ended as %s", state())
	}
	for session := range where {
		turn(session)
	}
	poll(t, "an event tells of it", func() bool {
		res, err := http.Get(s.Admin + "/api/events?follow=false")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body) // what there is of it
		return strings.Contains(string(text), `all requests go to tried`)
	}, s.out.String)
}
