package balancer_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// TestBatches sends the lines of a batch to the workers as its key's requests, with low
// priority, and keeps the answers for that key.
func TestBatches(t *testing.T) {
	doorBatches = t.TempDir()
	t.Cleanup(func() { doorBatches = "" })
	digest := func(s string) string { h := sha256.Sum256([]byte(s)); return hex.EncodeToString(h[:]) }
	r := newRig(t, []*sim.Worker{sim.New(sim.Options{Own: true}), sim.New(sim.Options{})}, func(set *control.WorkerSet) {
		set.Door.Batches = configs.DefaultDoor().Batches
		set.Door.Keys = []configs.Key{
			{Name: "one", SHA256: []string{digest("k1")}, Models: []string{"sim"}}, {Name: "two", SHA256: []string{digest("k2")}, Models: []string{"*"}}}
	})
	ask := func(method, path, key, ctype string, body io.Reader) (int, string) {
		t.Helper()
		req, err := http.NewRequest(method, r.url+path, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", ctype)
		resp, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	r.until("files are served", func() bool { status, _ := ask("GET", "/v1/files", "k1", "", nil); return status == 200 })
	if status, got := ask("GET", "/v1/files", "nobody", "", nil); status != 401 || !strings.Contains(got, "invalid_api_key") {
		t.Fatalf("%d %s", status, got)
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	w.WriteField("purpose", "batch")
	part, err := w.CreateFormFile("file", "in.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		model := "sim"
		if i == 7 {
			model = "other"
		}
		fmt.Fprintf(part, `{"custom_id":"q%d","method":"POST","url":"/v1/chat/completions","body":{"model":%q,"messages":[{"role":"user","content":"count"}],"max_tokens":5}}`+"\n", i, model)
	}
	w.Close()
	var file, b struct {
		ID     string  `json:"id"`
		Status string  `json:"status"`
		Output *string `json:"output_file_id"`
		Error  *string `json:"error_file_id"`
	}
	status, got := ask("POST", "/v1/files", "k1", w.FormDataContentType(), &form)
	if err := json.Unmarshal([]byte(got), &file); err != nil || status != 200 {
		t.Fatalf("%d %s", status, got)
	}
	create := fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`, file.ID)
	if status, got = ask("POST", "/v1/batches", "k2", "application/json", strings.NewReader(create)); status != 400 {
		t.Fatalf("another key's file: %d %s", status, got)
	}
	status, got = ask("POST", "/v1/batches", "k1", "application/json", strings.NewReader(create))
	if err := json.Unmarshal([]byte(got), &b); err != nil || status != 200 {
		t.Fatalf("%d %s", status, got)
	}
	r.until("the batch has ended", func() bool {
		_, got := ask("GET", "/v1/batches/"+b.ID, "k1", "", nil)
		return json.Unmarshal([]byte(got), &b) == nil && b.Status == "completed"
	})
	_, out := ask("GET", "/v1/files/"+*b.Output+"/content", "k1", "", nil)
	_, bad := ask("GET", "/v1/files/"+*b.Error+"/content", "k1", "", nil)
	if strings.Count(out, words(0, 5)) != 19 || strings.Count(bad, "\n") != 1 || !strings.Contains(bad, `"q7"`) || !strings.Contains(bad, "model_not_found") {
		t.Errorf("%s\n%s", out, bad)
	}
	if status, _ := ask("GET", "/v1/files/"+*b.Output+"/content", "k2", "", nil); status != 404 {
		t.Errorf("another key's answers: %d", status)
	}
	for _, want := range []string{`key_requests_total{key="one",outcome="ok"} 19`, `key_requests_total{key="one",outcome="refused"} 1`, `key_tokens_total{key="one",kind="generated"} 95`} {
		if m := r.metrics(); !strings.Contains(m, "roundhouse_"+want+"\n") {
			t.Errorf("there is no %s in\n%s", want, m)
		}
	}
	if m := r.metrics(); !strings.Contains(m, `roundhouse_queue_seconds_count{pool="p",priority="low"} 19`) {
		t.Errorf("the lines are not of low priority:\n%s", m)
	}
}
