package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/configs"
	"roundhouse/top"
)

// guarded is an admin API with a token, of which little is there.
func guarded(t *testing.T, listen string) http.Handler {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/version", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"version":"v9"}`) })
	mux.HandleFunc("GET /api/stream", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "event: hello\ndata: {\"schema\":1,\"version\":\"v9\",\"rights\":\"operator\",\"supervisor\":true}\n\n")
		fmt.Fprint(w, `event: state
data: {"schema":1,"verdict":{"level":"well","sentence":"all is well: 1 worker serves"},"door":{"state":"ready","streams":2},"figures":[],"pools":[{"name":"chat","desired":1,"ready":1,"rotation":{"state":"idle"}}],"workers":[{"id":"chat/`+"\\u001b[2J"+`1","pool":"chat","state":"ready"}]}

`)
	})
	mux.HandleFunc("GET /api/workers/chat/1/logs", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "one\ntwo of %s\n", r.URL.Query().Get("tail"))
	})
	mux.HandleFunc("GET /api/decisions", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"schema":1,"decisions":[{"request":"a","chosen":"chat/2","candidates":[{"worker":"chat/2"}]},{"request":"b","chosen":"chat/2","candidates":[{"worker":"chat/2"},{"worker":"chat/1"}]}]}`)
	})
	return control.Guard(configs.Admin{Listen: listen, Token: "s3cret"}, mux)
}

// reach runs a command beside an admin API, with its token, until it ends.
func reach(ctx context.Context, out io.Writer, args ...string) (code int, said string) {
	var wrong bytes.Buffer
	c := &console{in: strings.NewReader(""), out: out, err: &wrong, env: func(name string) (string, bool) {
		return "s3cret", name == "ROUNDHOUSE_ADMIN_TOKEN"
	}}
	r := root(c)
	r.SetContext(ctx)
	return c.run(r, args), wrong.String()
}

// exchange gives a one-time code for a token, as a browser does.
func exchange(t *testing.T, address string) (token string, status int) {
	t.Helper()
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil {
		t.Fatal(err)
	}
	code, err := url.QueryUnescape(strings.TrimPrefix(u.Fragment, "code="))
	if err != nil || u.Path != "/ui/" || code == "" {
		t.Fatalf("the address is %q: %v", address, err)
	}
	body, err := json.Marshal(map[string]string{"code": code})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post("http://"+u.Host+"/api/session", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got control.SessionShown
	_ = json.NewDecoder(resp.Body).Decode(&got) // a refusal has none
	if got.Token == nil {
		return "", resp.StatusCode
	}
	return *got.Token, resp.StatusCode
}

func ask(t *testing.T, address, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestConsole: the address has a code that is good once and gives a token that is not the
// operator's own; where nothing answers, the command says so with its code.
func TestConsole(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = guarded(t, server.Listener.Addr().String())
	server.Start()
	defer server.Close()
	var out bytes.Buffer
	if code, said := reach(t.Context(), &out, "console", "--admin", server.URL); code != exitDone || said != "" {
		t.Fatalf("it ends with %d: %s", code, said)
	}
	if strings.Contains(out.String(), "s3cret") {
		t.Errorf("the operator's token is printed: %s", out.String())
	}
	token, status := exchange(t, out.String())
	if status != http.StatusOK || token == "" || token == "s3cret" {
		t.Fatalf("the code gives %d, %q", status, token)
	}
	if status, text := ask(t, server.URL+"/api/version", token); status != http.StatusOK || !strings.Contains(text, "v9") {
		t.Errorf("with its token: %d %s", status, text)
	}
	if _, status := exchange(t, out.String()); status == http.StatusOK {
		t.Error("the code is good twice")
	}
	server.Close()
	if code, said := reach(t.Context(), io.Discard, "console", "--admin", server.URL); code != exitUnreachable || !strings.Contains(said, server.URL) {
		t.Errorf("where nothing answers it ends with %d: %s", code, said)
	}
}

// TestConsoleBridge: to a unix socket a port of this machine leads as long as the command
// runs, for whoever has its code, and for nobody else.
func TestConsoleBridge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: guarded(t, "unix://"+path)}
	go server.Serve(l) //nolint:errcheck // closed below
	defer server.Close()
	ctx, stop := context.WithCancel(t.Context())
	from, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		code, _ := reach(ctx, out, "console", "--admin", "unix://"+path)
		out.Close()
		ended <- code
	}()
	line := make([]byte, 512)
	n, err := from.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, from) //nolint:errcheck // the rest is none of this test's
	address := string(line[:n])
	token, status := exchange(t, address)
	base := regexp.MustCompile(`^http://[^/]+`).FindString(address)
	if status != http.StatusOK {
		t.Fatalf("the code gives %d", status)
	}
	if status, text := ask(t, base+"/api/version", token); status != http.StatusOK || !strings.Contains(text, "v9") {
		t.Errorf("over the bridge: %d %s", status, text)
	}
	if status, _ := ask(t, base+"/api/version", "guessed"); status != http.StatusUnauthorized {
		t.Errorf("without the token: %d", status)
	}
	stop()
	if code := <-ended; code != exitDone {
		t.Errorf("ended by Ctrl-C, it ends with %d", code)
	}
}

// TestTop prints one picture where nobody can press keys: plain, without what would steer
// a terminal; or the state as JSON.
func TestTop(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = guarded(t, server.Listener.Addr().String())
	server.Start()
	defer server.Close()
	for _, args := range [][]string{{"top", "--admin", server.URL}, {"top", "-1", "--ascii", "--admin", server.URL}} {
		var out bytes.Buffer
		code, said := reach(t.Context(), &out, args...)
		if code != exitDone || strings.Contains(out.String(), "\x1b") || !strings.Contains(out.String(), "well  all is well") || !strings.Contains(out.String(), "chat ") {
			t.Errorf("%v ends with %d, %s:\n%s", args, code, said, out.String())
		}
	}
	var out bytes.Buffer
	if code, said := reach(t.Context(), &out, "top", "--json", "--admin", server.URL); code != exitDone || !json.Valid(out.Bytes()) || !strings.Contains(out.String(), `"level": "well"`) {
		t.Errorf("--json ends with %d, %s:\n%s", code, said, out.String())
	}
	a, err := newClient(server.URL, "s3cret")
	if err != nil {
		t.Fatal(err)
	}
	if got := a.look(t.Context(), top.Want{View: "log", Worker: "chat/1"}); strings.Join(got.Lines, "|") != "one|two of 500" || got.Error != "" {
		t.Errorf("the log is %+v", got)
	}
	if got := a.look(t.Context(), top.Want{View: "explain", Worker: "chat/1"}); len(got.Choices) != 1 || got.Choices[0].Request != "b" {
		t.Errorf("the choices are %+v", got)
	}
	if got := a.look(t.Context(), top.Want{View: "log", Worker: "chat/7"}); got.Error == "" {
		t.Error("a log that is not there is no error")
	}
}
