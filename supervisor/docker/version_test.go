package docker

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"roundhouse/supervisor/moby"
)

// Engines from 20.10 (API 1.41) to 29 (1.52, and none below 1.44) are spoken to in a
// version that both know, settled once, whatever is asked first.
func TestVersions(t *testing.T) {
	f := func(engine, least, want string) {
		t.Helper()
		var mu sync.Mutex
		used := map[string]bool{}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Api-Version", engine)
			w.Header().Set("Content-Type", "application/json")
			if strings.HasSuffix(r.URL.Path, "/_ping") {
				fmt.Fprint(w, "OK")
				return
			}
			version := strings.Split(r.URL.Path, "/")[1]
			mu.Lock()
			used[version] = true
			mu.Unlock()
			if strings.HasSuffix(r.URL.Path, "/events") {
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				return
			}
			if version < "v"+least {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"message":"client version %s is too old. Minimum supported API version is %s"}`, version, least)
				return
			}
			fmt.Fprint(w, "[]")
		}))
		defer server.Close()
		d, err := New(moby.Host{URL: strings.Replace(server.URL, "http://", "tcp://", 1)}, "here", false)
		if err != nil {
			t.Fatal(err)
		}
		if list, err := d.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("engine %s: %v %v", engine, list, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(used) != 1 || !used[want] {
			t.Errorf("engine %s: spoken to in %v; want %s", engine, used, want)
		}
	}
	f("1.41", "1.12", "v1.41") // 20.10
	f("1.43", "1.12", "v1.43") // 24
	f("1.47", "1.24", "v1.47") // 27
	f("1.51", "1.24", "v1.51") // 28
	f("1.52", "1.44", "v1.51") // 29: what the client knows
}
