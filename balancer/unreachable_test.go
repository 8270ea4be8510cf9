package balancer_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestUnreachable says of a worker that never answered why it has not: nobody
// listens there, or it wants another key.
func TestUnreachable(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + closed.Addr().String()
	closed.Close()
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer locked.Close()
	r := foreignRig(t, map[string]string{"nobody": nobody, "locked": locked.URL})
	for id, want := range map[string]string{"p/nobody": "connection refused", "p/locked": "401 Unauthorized"} {
		r.until(id+" is unreachable: "+want, func() bool {
			for _, w := range r.door.State().Workers {
				if w.ID == id {
					return w.State == "unreachable" && strings.Contains(w.Reason, want)
				}
			}
			return false
		})
	}
}
