package balancer_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
)

// TestSpares fills the door's memory with bodies of streams that have begun. A
// new request takes their place, and a stream that lost its body still comes
// to its end, but cannot go on at another worker.
func TestSpares(t *testing.T) {
	a := sim.New(sim.Options{Own: true, Words: 1 << 20, Pace: time.Millisecond, Context: 1 << 20, Capacity: 1 << 30})
	b := sim.New(sim.Options{Own: true, Words: 3, Context: 1 << 20, Capacity: 1 << 30})
	r := newRig(t, []*sim.Worker{a, b}, func(s *control.WorkerSet) {
		s.Door.Memory = 100 << 10
		s.Pools[0].Workers[1].State = "draining" // until the others are where they should be
	})
	asked := 0
	ask := func(stream bool, n int) *http.Response {
		asked++ // each prompt is another: one like the last would go where that one is cached
		body := fmt.Sprintf(`{"model":"sim","stream":%v,"messages":[{"role":"user","content":%q}]}`, stream, strings.Repeat(string(rune('a'+asked%26)), n))
		resp, err := r.client.Post(r.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	dropped := func() bool {
		resp, err := r.client.Get(r.url + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return strings.Contains(string(text), `roundhouse_resumes_total{pool="p",reason="memory",result="impossible"} 1`)
	}
	long := ask(true, 60<<10)
	defer long.Body.Close()
	events := bufio.NewReader(long.Body)
	if line, err := events.ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: ") {
		t.Fatalf("got %q, %v", line, err)
	}
	if dropped() {
		t.Fatal("a body was given up while there was room")
	}
	resp := ask(true, 60<<10) // does not fit beside the other
	if io.Copy(io.Discard, io.LimitReader(resp.Body, 100)); resp.StatusCode != 200 {
		t.Fatalf("got %d while a spare could make room", resp.StatusCode)
	}
	resp.Body.Close()
	if !dropped() {
		t.Error("what was given up is not counted")
	}
	if resp := ask(false, 101<<10); resp.StatusCode != 503 {
		t.Errorf("a body above the bound: got %d, want 503", resp.StatusCode)
	}
	if _, err := events.ReadString('\n'); err != nil {
		t.Errorf("the stream that lost its body: %v", err)
	}
	both := r.set
	both.Version = 2
	both.Pools[0].Workers[1].State = "ready"
	if _, err := r.door.Apply(both); err != nil {
		t.Fatal(err)
	}
	a.Stop()
	rest, _ := io.ReadAll(events)
	if s := string(rest); !strings.Contains(s, `"error":{`) || strings.Contains(s, "[DONE]") {
		t.Errorf("a stream that cannot go on must end with an error event, got …%q", s[max(0, len(s)-200):])
	}
}

// TestIDsTakeMemory has a worker tell a stream's long prompt as token ids, and die. With
// room for them the stream goes on by them; without, it keeps none, and others' bodies
// have the room.
func TestIDsTakeMemory(t *testing.T) {
	for _, room := range []bool{true, false} {
		t.Run(fmt.Sprint("room ", room), func(t *testing.T) {
			told, die := make(chan bool, 1), make(chan bool)
			answer := func(w http.ResponseWriter, req *http.Request) {
				switch req.URL.Path {
				case "/v1/embeddings":
					io.WriteString(w, `{"data":[]}`)
				case "/v1/completions":
					w.Header().Set("Content-Type", "text/event-stream")
					flushed(w, "data: {\"id\":\"b\",\"object\":\"text_completion\",\"choices\":[{\"index\":0,\"text\":\" two\",\"token_ids\":[7],\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
				default:
					w.Header().Set("Content-Type", "text/event-stream")
					flushed(w, "data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}],\"prompt_token_ids\":["+strings.Repeat("1,", 200_000)+"1]}\n\n")
					flushed(w, "data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"one\"},\"token_ids\":[6]}]}\n\n")
					told <- true
					<-die
					panic(http.ErrAbortHandler)
				}
			}
			r := stubRig(t, func(s *control.WorkerSet) {
				if s.Door.Memory = 64 << 20; !room {
					s.Door.Memory = 1 << 20
				}
			}, answer, answer)
			body := func(n int) string { return fmt.Sprintf(`{"model":"sim","input":%q}`, strings.Repeat("x", n)) }
			resp, err := r.client.Post(r.url+"/v1/chat/completions", "application/json", strings.NewReader(strings.Replace(okBody, "{", `{"stream":true,"max_tokens":9,`, 1)))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			in := bufio.NewReader(resp.Body)
			<-told
			for range 4 { // two events with their ends
				if _, err := in.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			if resp, got := r.post("/v1/embeddings", body(700<<10)); resp.StatusCode != 200 {
				t.Errorf("a body beside them: %d %.200s", resp.StatusCode, got)
			}
			close(die)
			rest, _ := io.ReadAll(in)
			if got := string(rest); strings.Contains(got, " two") != room || strings.Contains(got, "worker_failed") == room {
				t.Errorf("the stream goes on with %q", got)
			}
			if resp, got := r.post("/v1/embeddings", body(1<<20-100)); resp.StatusCode != 200 {
				t.Errorf("a body after them: %d %.200s", resp.StatusCode, got)
			}
		})
	}
}
