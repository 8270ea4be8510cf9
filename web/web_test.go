package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

func get(t *testing.T, h http.Handler, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// TestPage: the page is had at /ui/, whoever comes to / is led there, and it may run
// nothing that does not come from here.
func TestPage(t *testing.T) {
	h := Handler()
	for _, from := range []string{"/", "/ui"} {
		if r := get(t, h, from); r.StatusCode != http.StatusFound || r.Header.Get("Location") != "/ui/" {
			t.Errorf("%s answers %d to %q; want 302 to /ui/", from, r.StatusCode, r.Header.Get("Location"))
		}
	}
	r := get(t, h, "/ui/")
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy": "microphone=(self), camera=()",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s is %q; want %q", name, got, want)
		}
	}
	csp := r.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self';", "require-trusted-types-for 'script'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(csp, want) {
			t.Errorf("the policy lacks %s: %s", want, csp)
		}
	}
	if strings.Contains(csp, "unsafe") {
		t.Errorf("the policy lets something unsafe through: %s", csp)
	}
	if r := get(t, h, "/ui/_/../../../etc/passwd"); r.StatusCode == http.StatusOK {
		t.Error("a path that climbs out is served")
	}
}

// TestAssets: files lie in a folder named for their content, from where they are kept
// for good, and the page names that folder.
func TestAssets(t *testing.T) {
	long := strings.Repeat("export const x = 1\n", 100)
	a := load(fstest.MapFS{"index.html": {Data: []byte(`<script type=module src="/ui/_/main.js">`)}, "main.js": {Data: []byte(long)}})
	if page := string(a.files["index.html"].plain); page != `<script type=module src="/ui/`+a.digest+`/main.js">` {
		t.Errorf("the page is %s", page)
	}
	other := load(fstest.MapFS{"index.html": {Data: []byte(`<script type=module src="/ui/_/main.js">`)}, "main.js": {Data: []byte(long + "\n")}})
	if a.digest == other.digest {
		t.Error("other files have the same digest")
	}
	serve := func(encoding string) *http.Response {
		r := httptest.NewRequest(http.MethodGet, "/ui/"+a.digest+"/main.js", nil)
		r.Header.Set("Accept-Encoding", encoding)
		w := httptest.NewRecorder()
		a.serve(w, r, "main.js", true)
		return w.Result()
	}
	r := serve("gzip, br")
	if got := r.Header.Get("Cache-Control"); !strings.Contains(got, "immutable") {
		t.Errorf("Cache-Control is %q", got)
	}
	if got := r.Header.Get("Content-Type"); got != "text/javascript; charset=utf-8" {
		t.Errorf("a script has the type %q", got)
	}
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || string(text) != long {
		t.Errorf("unzipped, the file is not what it was: %v", err)
	}
	var plain bytes.Buffer
	if _, err := plain.ReadFrom(serve("").Body); err != nil || plain.String() != long {
		t.Error("without gzip, the file is not what it is")
	}
}
