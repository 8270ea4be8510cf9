package control

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"roundhouse/configs"
)

// front is a guard before a handler that takes everything.
type front struct {
	*testing.T
	http.Handler
	saw Rights
}

func newFront(t *testing.T, cfg configs.Admin) *front {
	f := &front{T: t}
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:8001"
	}
	f.Handler = Guard(cfg, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.saw, _ = Admitted(r.Context())
		w.WriteHeader(http.StatusTeapot)
	}))
	return f
}

// ask sends a request with header fields, "Name: value" each.
func (f *front) ask(method, path, body string, fields ...string) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8001"
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func (f *front) want(status int, method, path string, fields ...string) {
	f.Helper()
	if got, text := f.ask(method, path, "", fields...); got != status {
		f.Errorf("%s %s with %q: %d %s; want %d", method, path, fields, got, text, status)
	}
}

const (
	in       = http.StatusTeapot
	operator = "Authorization: Bearer full"
	reader   = "Authorization: Bearer look"
	named    = "X-Roundhouse-Operator: me"
	here     = "Origin: http://127.0.0.1:8001"
)

var both = configs.Admin{Token: "full", ReadToken: "look"}

// TestFetchMetadata: a browser says where a request comes from, and no page of another
// origin asks anything, by whatever method; not even one of the same machine's.
func TestFetchMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFront(t, configs.Admin{})
		for _, path := range []string{"/api/workers", "/api/workers/chat/1/stop", "/metrics", "/api/session", "/api/code", TryPath + "v1/models"} {
			for _, method := range []string{"GET", "HEAD", "POST", "DELETE", "PUT", "OPTIONS"} {
				for _, site := range []string{"cross-site", "same-site", "nonsense"} {
					f.want(http.StatusForbidden, method, path, "Sec-Fetch-Site: "+site, "Sec-Fetch-Mode: no-cors", named)
				}
			}
		}
		f.want(in, "GET", "/api/workers", "Sec-Fetch-Site: same-origin")
		f.want(in, "GET", "/api/workers", "Sec-Fetch-Site: none")
		f.want(in, "GET", "/api/workers")
		f.want(in, "GET", "/ui/", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate")                  // a link to it
		f.want(http.StatusForbidden, "GET", "/ui/", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors") // an image of it
	})
}

// TestCommandsOfPages: a page's command carries a header that no form can send; a
// program's need not.
func TestCommandsOfPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFront(t, both)
		const stop = "/api/workers/chat/1/stop"
		f.want(http.StatusForbidden, "POST", stop, operator, here)
		f.want(http.StatusForbidden, "POST", stop, operator, "Sec-Fetch-Site: same-origin")
		f.want(in, "POST", stop, operator, here, named)
		f.want(in, "POST", stop, operator)
		f.want(http.StatusForbidden, "POST", stop, reader, here, named)
		f = newFront(t, configs.Admin{Token: "full", ReadToken: "look", Console: "read_only"})
		f.want(http.StatusForbidden, "POST", stop, operator, here, named)
		f.want(in, "GET", "/api/workers", operator, here)
		f.want(in, "POST", stop, operator) // roundhouse stop
		f = newFront(t, configs.Admin{Token: "full", Console: "off"})
		for _, path := range []string{"/", "/ui/", "/ui/x/main.js"} {
			f.want(http.StatusNotFound, "GET", path)
		}
		f.want(http.StatusNotFound, "POST", "/api/code", operator)
		f.want(http.StatusNotFound, "POST", "/api/session")
		f.want(in, "GET", "/api/workers", operator)
	})
}

// code has a code made, and session exchanges it.
func (f *front) code(fields ...string) string {
	f.Helper()
	status, text := f.ask("POST", "/api/code", "", fields...)
	var c CodeShown
	if err := json.Unmarshal([]byte(text), &c); status != http.StatusOK || err != nil || c.Code == "" {
		f.Fatalf("no code: %d %s", status, text)
	}
	return c.Code
}

func (f *front) session(code string) (int, SessionShown) {
	status, text := f.ask("POST", "/api/session", `{"code":"`+code+`"}`, here)
	var s SessionShown
	if status == http.StatusOK {
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			f.Fatalf("the session: %v in %s", err, text)
		}
	}
	return status, s
}

// TestSession: a one-time code is good once and for 30 s, and what it gives has the
// rights of whoever asked for it, for 12 h, through a restart, until admin.token changes.
func TestSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFront(t, both)
		code := f.code(operator)
		status, s := f.session(code)
		if status != http.StatusOK || s.Token == nil || s.Rights != Operator || s.Expires == nil {
			t.Fatalf("the code is not taken: %d %+v", status, s)
		}
		if strings.Contains(*s.Token, "full") {
			t.Error("the browser is given admin.token itself")
		}
		if status, _ := f.session(code); status != http.StatusForbidden {
			t.Errorf("the code is taken twice: %d", status)
		}
		bearer := "Authorization: Bearer " + *s.Token
		f.want(in, "POST", "/api/reload", bearer, here, named)
		if f.saw != Operator {
			t.Errorf("the rights are %q", f.saw)
		}
		_, r := f.session(f.code(reader))
		f.want(in, "GET", "/api/workers", "Authorization: Bearer "+*r.Token)
		if r.Rights != Read || f.saw != Read {
			t.Errorf("a reader's code gives the rights %q", f.saw)
		}
		f.want(http.StatusForbidden, "POST", "/api/reload", "Authorization: Bearer "+*r.Token, here, named)
		forged := strings.Replace(*r.Token, ".read.", ".operator.", 1)
		f.want(http.StatusUnauthorized, "GET", "/api/workers", "Authorization: Bearer "+forged)
		f.want(http.StatusUnauthorized, "GET", "/api/workers", "Authorization: Bearer rhs1.operator")
		f.want(http.StatusUnauthorized, "POST", "/api/code")

		newFront(t, both).want(in, "GET", "/api/workers", bearer) // started anew
		newFront(t, configs.Admin{Token: "changed"}).want(http.StatusUnauthorized, "GET", "/api/workers", bearer)

		late := f.code(operator)
		time.Sleep(codeTime)
		if status, _ := f.session(late); status != http.StatusForbidden {
			t.Errorf("a code is good after its time: %d", status)
		}
		time.Sleep(sessionTime)
		f.want(http.StatusUnauthorized, "GET", "/api/workers", bearer)
	})
}

// TestWrongTokenWaits: who guesses gets his answer late, and codes do not pile up.
func TestWrongTokenWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFront(t, both)
		began := time.Now()
		f.want(http.StatusUnauthorized, "GET", "/api/workers", "Authorization: Bearer wrong")
		if status, _ := f.session("guessed"); status != http.StatusForbidden {
			t.Errorf("a guessed code: %d", status)
		}
		if took := time.Since(began); took != 2*wrongToken {
			t.Errorf("two guesses take %v", took)
		}
		first := f.code(operator)
		for range mostCodes {
			time.Sleep(time.Millisecond)
			f.code(operator)
		}
		if status, _ := f.session(first); status != http.StatusForbidden {
			t.Error("more codes are good at once than may be")
		}
	})
	open := newFront(t, configs.Admin{})
	if status, s := open.session(open.code()); status != http.StatusOK || s.Token != nil || s.Rights != Operator {
		t.Errorf("without a token to guard: %d %+v", status, s)
	}
}

// TestPeerToken: a door's token tells totals, and has no other right.
func TestPeerToken(t *testing.T) {
	f := newFront(t, configs.Admin{Token: "full", ReadToken: "look"})
	peer := "Authorization: Bearer " + PeerToken("full")
	f.want(in, "PUT", TotalsPath, peer)
	if f.saw != Peer {
		t.Errorf("it has the rights of %q", f.saw)
	}
	f.want(in, "PUT", TotalsPath, operator)
	f.want(http.StatusForbidden, "PUT", TotalsPath, reader)
	for _, path := range []string{"/api/workers", "/api/stream", "/metrics", "/api/config", TotalsPath} {
		f.want(http.StatusForbidden, "GET", path, peer)
	}
	for _, path := range []string{"/api/workers/chat/w1/drain", "/api/upgrade", "/api/keys", "/api/code", TryPath + "v1/models", TotalsPath} {
		f.want(http.StatusForbidden, "POST", path, peer, named)
	}
	if PeerToken("") != "" || PeerToken("a") == PeerToken("b") {
		t.Error("a token is made of admin.token")
	}
}
