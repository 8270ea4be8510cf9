package balancer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/requestlog"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// TestRequestLog: requests are written where asked, with their texts where asked, of the
// keys that are asked for, and never with what opens the door.
func TestRequestLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "requests.jsonl")
	r := newRig(t, []*sim.Worker{sim.New(sim.Options{Own: true, Words: 12})}, func(s *control.WorkerSet) {
		s.Epoch = 0
		for _, k := range []string{"seen", "unseen"} {
			s.Keys = append(s.Keys, configs.Key{Name: k, SHA256: []string{hashOf("secret-" + k)}, Models: []string{"*"}})
		}
		s.Door.LogRequests = &configs.LogRequests{Path: path, Keys: []string{"seen"}, Bodies: true, Body: 200, Size: 1 << 20, Files: 2}
	})
	for _, key := range []string{"unseen", "seen"} {
		for i, body := range []string{okBody, fmt.Sprintf(chatBody, true, ""), `{"model":"none","messages":[]}`} {
			r.post("/v1/chat/completions", body, "Authorization", "Bearer secret-"+key, "Cookie", "secret-cookie", "x-request-id", fmt.Sprint(key, i))
		}
	}
	r.post("/v1/chat/completions", okBody, "Authorization", "Bearer secret-wrong")
	var lines []requestlog.Line
	r.until("three are written", func() bool {
		text, err := os.ReadFile(path)
		if err != nil || len(text) == 0 {
			return false // its file is there before its first line
		}
		if strings.Contains(string(text), "secret") {
			t.Fatalf("a secret is in %s", text)
		}
		lines = nil
		for _, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
			var l requestlog.Line
			if err := json.Unmarshal(line, &l); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			lines = append(lines, l)
		}
		return len(lines) == 3
	})
	for i, want := range []struct {
		status  int
		outcome string
		answer  string
	}{{200, "ok", `{"id":`}, {200, "ok", "data: {"}, {400, "refused", ""}} {
		l := lines[i]
		if l.ID != fmt.Sprint("seen", i) || l.Key != "seen" || l.Status != want.status || l.Outcome != want.outcome || l.Request == nil || !strings.Contains(l.Request.Text, `"model"`) {
			t.Errorf("%d: %+v", i, l)
		}
		if want.answer != "" && (l.Answer == nil || !strings.Contains(l.Answer.Text, want.answer) || len(l.Answer.Text) > 200 || l.TokensOut == nil && i == 0) {
			t.Errorf("%d: its answer is %+v", i, l.Answer)
		}
	}
	if a := lines[1].Answer; a == nil || !a.Cut || a.Bytes <= 200 {
		t.Errorf("a long answer: %+v", a)
	}
	r.until("no memory is held", func() bool { return r.door.Held() == 0 })
	set := r.set
	set.Version, set.Door.LogRequests = 2, &configs.LogRequests{Path: filepath.Join(path, "no-folder"), Keys: []string{"*"}, Size: 1 << 20, Files: 2}
	if _, err := r.door.Apply(set); err != nil {
		t.Fatal(err)
	}
	r.until("what cannot be written is counted and told", func() bool {
		r.post("/v1/chat/completions", okBody, "Authorization", "Bearer secret-seen")
		text := r.metrics()
		return !strings.Contains(text, "roundhouse_request_log_lines_dropped_total 0") && strings.Contains(text, `roundhouse_door_fault{what="request_log"} 1`)
	})
}
