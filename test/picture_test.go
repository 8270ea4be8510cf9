package test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"roundhouse/worker/workertest"
)

// seers is a pool of two workers with a model that sees. %q is its folder.
const seers = `
pool "see" {
  driver  = "process"
  devices = "cpu"
  workers = 2
  engine {
    model             = %q
    served_model_name = ["seer"]
    args              = ["--dtype", "float32", "--weights-cache", "off", "--pace", "20ms"]
  }
}
`

// TestPictureGoesOn kills the worker that answers about a picture: the other goes
// on, with the picture, and the client has the answer as if nothing had been.
func TestPictureGoesOn(t *testing.T) {
	folder := t.TempDir()
	if err := workertest.WriteSeeing(folder, "../worker/model/testdata/qwen2_vl.json"); err != nil {
		t.Fatal(err)
	}
	s := start(t, fmt.Sprintf(seers, folder))
	said := map[string]bool{}
	for seed := range 2 {
		file, err := workertest.Draw(40, 24, seed+1)
		if err != nil {
			t.Fatal(err)
		}
		body := fmt.Sprintf(`{"model":"seer","stream":true,"stream_options":{"include_usage":true},"max_tokens":60,"temperature":0,"ignore_eos":true,"messages":[{"role":"user","content":[{"type":"text","text":"what is it"},{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}]}`, base64.StdEncoding.EncodeToString(file))
		want := s.look(body, -1)
		if said[want] {
			t.Error("two pictures have one answer")
		}
		said[want] = true
		// On a busy machine the worker may have said everything before the test reads a third of it.
		before := s.sum("roundhouse_resumes_total")
		for tries := 0; s.sum("roundhouse_resumes_total") == before; tries++ {
			if tries == 5 {
				t.Fatalf("none of %d streams has gone on", tries)
			}
			if got := s.look(body, 20); got != want {
				t.Errorf("with its worker killed: %q; want %q", got, want)
			}
			s.waitReady()
		}
	}
}

// look asks for a stream, kills the worker that answers after so many events, if
// that is not below 0, and returns the text and how many tokens it is.
func (s *system) look(body string, events int) string {
	t := s.t
	t.Helper()
	resp, err := http.Post(s.Door+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Fatalf("status %d", resp.StatusCode)
	}
	said, usage, done := "", "", false
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if done = data == "[DONE]"; done {
			break
		}
		var e struct {
			Choices []struct{ Delta struct{ Content string } }
			Usage   struct {
				Prompt     int `json:"prompt_tokens"`
				Completion int `json:"completion_tokens"`
			}
			Error json.RawMessage
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.Error != nil {
			t.Fatalf("%s: %v", data, err)
		}
		for _, c := range e.Choices {
			said += c.Delta.Content
		}
		if e.Usage.Prompt > 0 {
			usage = fmt.Sprint(e.Usage)
		}
		if events--; events == 0 {
			s.kill(resp.Header.Get("x-roundhouse-worker"))
		}
	}
	if !done {
		t.Error("the stream does not end")
	}
	if events > 0 {
		t.Error("the stream ended before its worker")
	}
	return said + usage
}

// kill ends a worker's process outright.
func (s *system) kill(id string) {
	s.t.Helper()
	for _, w := range s.known() {
		if w.ID == id {
			if err := syscall.Kill(w.Place.PID, syscall.SIGKILL); err != nil {
				s.t.Fatalf("kill %s: %v", id, err)
			}
			return
		}
	}
	s.t.Fatalf("no worker %q", id)
}
