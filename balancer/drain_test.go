package balancer_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"roundhouse/balancer/control"
)

// TestDrainWaits ends a door while a client still sends its request, and while
// one still takes its answer: both are served whole.
func TestDrainWaits(t *testing.T) {
	long := strings.Repeat("x", 24<<20)
	m := http.NewServeMux()
	m.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"data":[{"id":"sim"}]}`) })
	m.HandleFunc("GET /metrics", func(http.ResponseWriter, *http.Request) {})
	m.HandleFunc("POST /v1/embeddings", func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, `{"object":"list","data":%q}`, long)
	})
	for _, test := range []struct {
		name        string
		send, taken int // pieces that the request is sent in, and bytes that are taken at once
	}{
		{"a request that is sent slowly", 30, 4 << 20},
		{"an answer that is taken slowly", 1, 64 << 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			worker := httptest.NewServer(m)
			t.Cleanup(worker.Close)
			r := newRig(t, nil, func(s *control.WorkerSet) {
				s.Pools[0].Workers = []control.Worker{{Name: "1", URL: worker.URL, Generation: 1, Kind: "vllm", State: "ready"}}
			})
			c, err := net.Dial("tcp", r.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(10 * time.Minute)) // a crowded machine may stand still for one
			body := fmt.Sprintf(`{"model":"sim","input":%q}`, strings.Repeat("a ", 20_000))
			fmt.Fprintf(c, "POST /v1/embeddings HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", len(body))
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			shut := func() {
				p := httptest.NewServer(r.door.Private())
				defer p.Close()
				if resp, err := http.Post(p.URL+"/shutdown", "", nil); err == nil {
					resp.Body.Close()
				}
			}
			for i := range test.send {
				if _, err := io.WriteString(c, body[i*len(body)/test.send:(i+1)*len(body)/test.send]); err != nil {
					t.Fatalf("after %d of %d pieces of the request: %v", i, test.send, err)
				}
				if test.send > 1 {
					<-tick.C
				}
				if test.send > 1 && i == 1 {
					shut()
				}
			}
			answer := bufio.NewReader(c)
			resp, err := http.ReadResponse(answer, nil)
			if err != nil {
				t.Fatal(err)
			}
			if test.send == 1 {
				shut()
			}
			pause := time.NewTicker(2 * time.Millisecond)
			defer pause.Stop()
			buf, got := make([]byte, test.taken), 0
			for err == nil {
				var n int
				n, err = io.ReadFull(resp.Body, buf)
				got += n
				<-pause.C
			}
			if want := len(long) + len(`{"object":"list","data":""}`); resp.StatusCode != 200 || got != want {
				t.Errorf("got %d, %d bytes; want 200, %d: %v", resp.StatusCode, got, want, err)
			}
		})
	}
}

// TestDrainRefuses: while a door without a successor ends its last request, who
// connects is refused and does not hang.
func TestDrainRefuses(t *testing.T) {
	there, finish := make(chan struct{}), make(chan struct{})
	r := stubRig(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		close(there)
		<-finish
		io.WriteString(w, `{"object":"list"}`)
	})
	status := make(chan int, 1)
	go func() {
		resp, _ := r.post("/v1/embeddings", `{"model":"sim","input":"x"}`)
		status <- resp.StatusCode
	}()
	<-there
	p := httptest.NewServer(r.door.Private())
	defer p.Close()
	resp, err := http.Post(p.URL+"/shutdown", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	r.until("who connects is refused", func() bool {
		c, err := net.Dial("tcp", r.addr)
		if err == nil {
			c.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	close(finish)
	if got := <-status; got != 200 {
		t.Errorf("the request that ran got %d", got)
	}
}
