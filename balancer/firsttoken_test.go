package balancer_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// TestRefusalsAreNoFirstTokens: a worker's refusal comes within milliseconds, whether as
// a status or as the only event of a stream, and is left out of the times of first tokens.
func TestRefusalsAreNoFirstTokens(t *testing.T) {
	var next atomic.Pointer[http.HandlerFunc]
	r := stubRig(t, nil, func(w http.ResponseWriter, r *http.Request) { (*next.Load())(w, r) })
	const long = `{"error":{"message":"This model's maximum context length is 8 tokens.","type":"BadRequestError","code":400}}`
	asked := 0
	f := func(stream bool, answer http.HandlerFunc) {
		t.Helper()
		next.Store(&answer)
		if _, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, stream, "")); got == "" {
			t.Error("nothing is answered")
		}
		asked++
	}
	refuse := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, long)
	}
	f(true, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, oneEvent+endEvents)
	})
	f(false, refuse)
	f(true, refuse)
	f(true, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: "+long+"\n\ndata: [DONE]\n\n")
	})
	var text string
	r.until("all are counted", func() bool {
		text = r.metrics()
		return strings.Contains(text, fmt.Sprintf(`roundhouse_request_duration_seconds_count{model="sim",pool="p",route="other"} %d`, asked))
	})
	if want := `roundhouse_ttft_seconds_count{model="sim",pool="p",route="other"} 1`; !strings.Contains(text, want+"\n") {
		t.Errorf("no %s in\n%s", want, text)
	}
}
