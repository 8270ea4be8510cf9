package counting

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Every way in which a stream is not whole is seen, and told from the others.
func TestCount(t *testing.T) {
	event := func(id, text, finish string) string {
		return fmt.Sprintf("data: {\"id\":%q,\"choices\":[{\"delta\":{\"content\":%q},\"finish_reason\":%q}]}\n\n", id, text, finish)
	}
	const done = "data: [DONE]\n\n"
	f := func(answer string, want Fate) {
		t.Helper()
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if answer == "" {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			fmt.Fprint(w, answer)
		}))
		defer s.Close()
		pieces := 0
		_, err := Count(t.Context(), s.URL, 1, 3, func() { pieces++ })
		switch {
		case want == "" && (err != nil || pieces != strings.Count(answer, "content\":\"")-strings.Count(answer, "content\":\"\"")):
			t.Errorf("%s: %d pieces, %v", answer, pieces, err)
		case FateOf(err) != want:
			t.Errorf("%s: got %v; want %q", answer, err, want)
		}
	}
	f(event("a", "1, 2", "")+": waiting\n\n"+event("a", ", 3", "")+event("a", "", "stop")+done, "")
	f("", Refused)
	f(event("a", "1, 2, 3", "stop"), Lost)
	f(event("a", "1, 2, 3", "")+done, Lost)
	f(event("a", "1", "")+"data: {\"error\":{\"message\":\"no\"}}\n\n", Lost)
	f("data: {\n\n", Lost)
	f(event("a", "1, 2, 3", "stop")+done+done, Mixed)
	f(event("a", "1, ", "")+event("b", "2, 3", "stop")+done, Mixed)
	f(event("a", "1, 3", "stop")+done, Mixed)
	f(event("a", "1, 2", "stop")+done, Mixed)
	s := httptest.NewServer(nil)
	s.Close()
	if _, err := Count(t.Context(), s.URL, 1, 3, nil); FateOf(err) != Refused {
		t.Errorf("nobody listens: %v", err)
	}
}
