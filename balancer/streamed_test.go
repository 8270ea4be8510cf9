package balancer_test

import (
	"bufio"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
)

// TestStreamedThrough asks for a transcription and for a stored response as streams:
// each event is there before the worker has said the next one. One that breaks off ends
// with an error event, and one that has no end mark is whole where its body is.
func TestStreamedThrough(t *testing.T) {
	heard := make(chan bool)
	r := stubRig(t, nil, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/v1/responses" {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"id":"resp_1","object":"response"}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		flushed(w, "data: {\"text\":\"one\"}\n\n")
		<-heard
		if req.URL.Query().Has("broken") {
			panic(http.ErrAbortHandler)
		}
		flushed(w, "data: {\"text\":\"two\"}\n\n")
	})
	if resp, got := r.post("/v1/responses", `{"model":"sim","input":"x"}`); resp.StatusCode != 200 {
		t.Fatalf("got %d %s", resp.StatusCode, got)
	}
	transcription := func(query, stream string) *http.Request {
		var b strings.Builder
		form := multipart.NewWriter(&b)
		form.WriteField("model", "sim")
		form.WriteField("stream", stream)
		form.Close()
		req, err := http.NewRequest("POST", r.url+"/v1/audio/transcriptions"+query, strings.NewReader(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", form.FormDataContentType())
		return req
	}
	stored := func(query string) *http.Request {
		req, err := http.NewRequest("GET", r.url+"/v1/responses/resp_1?stream=true"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		return req
	}
	hear := func(name string, req *http.Request, whole bool) {
		t.Helper()
		resp, err := r.client.Do(req)
		if err != nil || resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
			t.Fatalf("%s: %v %v", name, resp, err)
		}
		defer resp.Body.Close()
		in := bufio.NewReader(resp.Body)
		if line, err := in.ReadString('\n'); err != nil || line != "data: {\"text\":\"one\"}\n" {
			t.Fatalf("%s: %q, %v", name, line, err)
		}
		heard <- true
		rest, err := io.ReadAll(in)
		if got := string(rest); whole && (got != "\ndata: {\"text\":\"two\"}\n\n" || err != nil) || !whole && (!strings.Contains(got, "worker_failed") || err == nil) {
			t.Errorf("%s: then %q, %v", name, got, err)
		}
	}
	hear("a transcription", transcription("", "true"), true)
	hear("a transcription, as Python writes it", transcription("", "True"), true)
	hear("one that breaks off", transcription("?broken=1", "1"), false)
	hear("a stored response", stored(""), true)
	hear("a stored response that breaks off", stored("&broken=1"), false)
}

// TestStoredCostsNothing reads a stored response in both ways: its tokens were counted
// when they were generated.
func TestStoredCostsNothing(t *testing.T) {
	r := stubRig(t, nil, func(w http.ResponseWriter, req *http.Request) {
		const answer = `{"id":"resp_1","object":"response","usage":{"input_tokens":5,"output_tokens":7}}`
		if req.URL.Query().Get("stream") == "true" {
			w.Header().Set("Content-Type", "text/event-stream")
			flushed(w, "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":"+answer+"}\n\n")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, answer)
	})
	if resp, got := r.post("/v1/responses", `{"model":"sim","input":"x"}`); resp.StatusCode != 200 {
		t.Fatalf("got %d %s", resp.StatusCode, got)
	}
	for _, query := range []string{"", "?stream=true"} {
		resp, err := r.client.Get(r.url + "/v1/responses/resp_1" + query)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(got), "output_tokens") {
			t.Errorf("%q: %q, %v", query, got, err)
		}
		resp.Body.Close()
	}
	r.until("both are counted", func() bool {
		return strings.Contains(r.metrics(), `roundhouse_requests_total{code="200",model="other",outcome="ok",pool="p",route="other"} 2`)
	})
	if m := r.metrics(); !strings.Contains(m, `roundhouse_tokens_total{kind="generated",model="sim",pool="p",route="other"} 7`) ||
		!strings.Contains(m, `roundhouse_tokens_total{kind="generated",model="other",pool="p",route="other"} 0`) {
		t.Errorf("got\n%s", m)
	}
}
