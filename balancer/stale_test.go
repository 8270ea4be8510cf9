package balancer_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestStale has a worker end every connection behind its answer without a word
// of warning, wholly or only for what it sends itself: no client notices.
func TestStale(t *testing.T) {
	const answer = `{"id":"x","object":"chat.completion","choices":[]}`
	for _, half := range []bool{false, true} {
		ended := make(chan struct{}, 1)
		r := stubRig(t, nil, func(w http.ResponseWriter, req *http.Request) {
			io.Copy(io.Discard, req.Body)
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
			if half {
				c.(*net.TCPConn).CloseWrite()
				go func() {
					io.Copy(io.Discard, c)
					c.Close()
				}()
			} else {
				c.Close()
			}
			ended <- struct{}{}
		})
		for range 5 {
			if resp, got := r.post("/v1/chat/completions", okBody); resp.StatusCode != 200 || got != answer {
				t.Errorf("half %v: got %d %s", half, resp.StatusCode, got)
			}
			<-ended
			at := time.Now()
			r.until("the connection has been idle for a while", func() bool { return time.Since(at) > 5*time.Millisecond })
		}
	}
}
