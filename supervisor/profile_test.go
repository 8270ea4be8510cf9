package supervisor

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A vLLM is told to begin and to end, with its key, whatever becomes of the asker; what
// it answers is said in words. Ours answers with files, which are passed on.
func TestProfilePassedOn(t *testing.T) {
	type engine struct{ start, stop, kind, body string }
	f := func(name string, e engine, leaves time.Duration, want int, says, asked string) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var paths []string
				p := profiler{client: &http.Client{Transport: wire(func(r *http.Request) *http.Response {
					mu.Lock()
					defer mu.Unlock()
					rec := httptest.NewRecorder()
					code := map[string]string{"/start_profile": e.start, "/stop_profile": e.stop, "/metrics": "200"}[r.URL.Path]
					if r.URL.Path != "/metrics" {
						paths = append(paths, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
					}
					var status int
					_, _ = fmt.Sscan(code, &status)
					if r.URL.Path == "/stop_profile" {
						rec.Header().Set("Content-Type", e.kind)
					}
					rec.WriteHeader(status)
					fmt.Fprint(rec, e.body)
					return rec.Result()
				})}}
				ctx := t.Context()
				if leaves > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, leaves)
					defer cancel()
				}
				rec := httptest.NewRecorder()
				p.serve(rec, httptest.NewRequest("POST", "/", nil).WithContext(ctx), engineAt{"a/1", "http://engine", "k"}, 7*time.Second)
				if got := rec.Body.String(); rec.Code != want || !strings.Contains(got, says) {
					t.Errorf("%d %s; want %d and %q", rec.Code, got, want, says)
				}
				if got := strings.Join(paths, ", "); got != asked {
					t.Errorf("it was asked %s; want %s", got, asked)
				}
			})
		})
	}
	const both = "POST /start_profile Bearer k, POST /stop_profile Bearer k"
	f("vLLM", engine{start: "200", stop: "200"}, 0, 200, "torch_profiler_dir", both)
	f("ours", engine{start: "200", stop: "200", kind: "application/zip", body: "PK"}, 0, 200, "PK", both)
	f("not enabled", engine{start: "404"}, 0, 409, "--profiler-config", "POST /start_profile Bearer k")
	f("a key is missing", engine{start: "401"}, 0, 409, "api_key", "POST /start_profile Bearer k")
	f("it runs already", engine{start: "409", body: "a profile is being taken"}, 0, 409, "a profile is being taken", "POST /start_profile Bearer k")
	f("the asker leaves", engine{start: "200", stop: "200"}, 8*time.Second, 400, "deadline", both)
	f("it fails to write", engine{start: "200", stop: "500", body: "no space"}, 0, 409, "no space", both)
}

// wire answers requests without a network.
type wire func(*http.Request) *http.Response

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w(r), nil
}
