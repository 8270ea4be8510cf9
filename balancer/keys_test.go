package balancer_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"roundhouse/balancer"
	"roundhouse/balancer/control"
	"roundhouse/balancer/control/keyfile"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// adminOf serves a door's admin API, and asks it.
func adminOf(t *testing.T, r *rig, keys *keyfile.Store) func(method, path, body string) (int, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.door.ServeAdmin(l, balancer.Admin{Config: configs.Admin{Listen: l.Addr().String(), Token: "all", ReadToken: "look"}, File: "/etc/roundhouse.hcl", Keys: keys})
	return func(method, path, body string) (int, string) {
		token := "all"
		if path, ok := strings.CutPrefix(path, "look:"); ok {
			return ask(t, r, method, "http://"+l.Addr().String()+path, "look", body)
		}
		return ask(t, r, method, "http://"+l.Addr().String()+path, token, body)
	}
}

func ask(t *testing.T, r *rig, method, url, token, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := r.client.Do(req)
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

// TestKeysAtRunTime: a key is made, holds at once beside the configuration's, and is
// revoked at once; a stream of it goes on to its end.
func TestKeysAtRunTime(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 40, Pace: 5 * time.Millisecond})
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) {
		s.Epoch = 0
		s.Door.Keys = []configs.Key{{Name: "theirs", SHA256: []string{hashOf("configured")}, Models: []string{"*"}}}
	})
	dir := t.TempDir()
	admin := adminOf(t, r, keyfile.Open(dir))
	f := func(want int, says, method, path, body string) string {
		t.Helper()
		status, text := admin(method, path, body)
		if status != want || !strings.Contains(text, says) {
			t.Errorf("%s %s: %d %s; want %d with %s", method, path, status, text, want, says)
		}
		return text
	}
	f(403, "only reads", "POST", "look:/api/keys", `{"name":"x"}`)
	f(400, "unknown field", "POST", "/api/keys", `{"name":"x","colour":"red"}`)
	f(409, "theirs", "POST", "/api/keys", `{"name":"theirs"}`)
	var added control.KeyAdded
	if err := json.Unmarshal([]byte(f(201, `"doors":1`, "POST", "/api/keys", `{"name":"team/a"}`)), &added); err != nil || !strings.HasPrefix(added.Key, "sk-") || added.First {
		t.Fatalf("%+v %v", added, err)
	}
	for key, want := range map[string]int{added.Key: 200, "configured": 200, "wrong": 401} {
		if resp, text := r.post("/v1/chat/completions", okBody, "Authorization", "Bearer "+key); resp.StatusCode != want {
			t.Errorf("%s: %d %s", key, resp.StatusCode, text)
		}
	}
	if text := f(200, `"name":"team/a","source":"made"`, "GET", "look:/api/keys", ""); strings.Contains(text, added.Key) || strings.Contains(text, added.SHA256) {
		t.Errorf("the list tells what opens a key: %s", text)
	}
	f(409, "/etc/roundhouse.hcl", "DELETE", "/api/keys/theirs", "")
	f(404, "no such key", "DELETE", "/api/keys/nobody", "")
	f(403, "only reads", "DELETE", "look:/api/keys/team%2Fa", "")

	stream := make(chan string)
	go func() {
		_, text := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, ""), "Authorization", "Bearer "+added.Key)
		stream <- text
	}()
	r.until("it streams", func() bool {
		all := r.door.Requests()
		return len(all) == 1 && all[0].State == "streaming"
	})
	f(200, `"left":1,"live":1`, "DELETE", "/api/keys/team%2Fa", "")
	if resp, _ := r.post("/v1/chat/completions", okBody, "Authorization", "Bearer "+added.Key); resp.StatusCode != 401 {
		t.Errorf("a revoked key: %d", resp.StatusCode)
	}
	if text := <-stream; !strings.Contains(text, "[DONE]") {
		t.Errorf("its stream was cut: %s", text)
	}
	r.until("its figures are gone", func() bool { return !strings.Contains(r.metrics(), "team/a") })
}

// TestLastKeyLeavesTheDoorShut: a door that asked nobody asks everybody from the first
// key on, and lets nobody in once the last is revoked or has expired.
func TestLastKeyLeavesTheDoorShut(t *testing.T) {
	r := newRig(t, []*sim.Worker{sim.New(sim.Options{Own: true})}, func(s *control.WorkerSet) { s.Epoch = 0 })
	admin := adminOf(t, r, keyfile.Open(t.TempDir()))
	try := func(want int, says string, header ...string) {
		t.Helper()
		if resp, text := r.post("/v1/chat/completions", okBody, header...); resp.StatusCode != want || !strings.Contains(text, says) {
			t.Errorf("%d %s; want %d with %s", resp.StatusCode, text, want, says)
		}
	}
	try(200, "")
	if status, text := admin("POST", "/api/keys", fmt.Sprintf(`{"name":"old","sha256":[%q],"expires":"2020-01-01T00:00:00Z"}`, hashOf("old"))); status != 201 || !strings.Contains(text, `"first":true`) || strings.Contains(text, `"key"`) {
		t.Fatal(status, text)
	}
	try(401, "invalid_api_key")
	try(401, `key \"old\" expired at 2020-01-01T00:00:00Z`, "Authorization", "Bearer old")
	if status, text := admin("DELETE", "/api/keys/old", ""); status != 200 || !strings.Contains(text, `"left":0`) {
		t.Fatal(status, text)
	}
	try(401, "invalid_api_key")
}

// TestKeysPools: a key sees and uses its pools alone.
func TestKeysPools(t *testing.T) {
	a, b := sim.New(sim.Options{Own: true, Salt: "A"}), sim.New(sim.Options{Own: true, Salt: "B"})
	r := newRig(t, []*sim.Worker{a, b}, func(s *control.WorkerSet) {
		second := s.Pools[0]
		second.Name, second.Workers, s.Pools[0].Workers = "q", s.Pools[0].Workers[1:], s.Pools[0].Workers[:1]
		s.Pools = append(s.Pools, second)
		for _, k := range []string{"p", "q", "none"} {
			s.Keys = append(s.Keys, configs.Key{Name: k, SHA256: []string{hashOf(k)}, Models: []string{"*"}, Pools: []string{k}})
		}
	})
	for key, pool := range map[string]string{"p": "p/", "q": "q/"} {
		for range 4 {
			resp, text := r.post("/v1/chat/completions", okBody, "Authorization", "Bearer "+key)
			if at := resp.Header.Get("X-Roundhouse-Worker"); resp.StatusCode != 200 || at != "" && !strings.HasPrefix(at, pool) {
				t.Errorf("%s: %d by %s %s", key, resp.StatusCode, at, text)
			}
		}
	}
	if got := [2]int64{a.Served.Load(), b.Served.Load()}; got != [2]int64{4, 4} {
		t.Errorf("the workers have served %v", got)
	}
	if resp, _ := r.post("/v1/chat/completions", okBody, "Authorization", "Bearer none"); resp.StatusCode != 404 {
		t.Errorf("a key without a pool: %d", resp.StatusCode)
	}
	if status, text := ask(t, r, "GET", r.url+"/v1/models", "none", ""); status != 200 || strings.Contains(text, `"sim"`) {
		t.Errorf("it sees %s", text)
	}
}

// TestBudgets: what engines answer counts, whole or cut; a key beyond its budget is told
// so as OpenAI does, and what it used can be exported.
func TestBudgets(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 12})
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) {
		s.Epoch = 0
		for name, b := range map[string]configs.Budget{"few": {Requests: 2}, "words": {TokensOut: 13}} {
			s.Keys = append(s.Keys, configs.Key{Name: name, SHA256: []string{hashOf(name)}, Models: []string{"*"}, Day: b})
		}
	})
	admin := adminOf(t, r, keyfile.Open(""))
	for _, name := range []string{"few", "words"} {
		for n := range 2 {
			if resp, text := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, n == 1, ""), "Authorization", "Bearer "+name); resp.StatusCode != 200 {
				t.Errorf("%s, %d: %d %s", name, n, resp.StatusCode, text)
			}
		}
		r.until("nothing runs", func() bool { return len(r.door.Requests()) == 0 })
		resp, text := r.post("/v1/chat/completions", okBody, "Authorization", "Bearer "+name)
		if resp.StatusCode != 429 || !strings.Contains(text, `"type":"insufficient_quota"`) || !strings.Contains(text, `"code":"insufficient_quota"`) || !strings.Contains(text, "begins anew at 20") || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", name, resp.StatusCode, text)
		}
		if resp, text := r.post("/v1/messages", okBody, "X-Api-Key", name); resp.StatusCode != 429 || !strings.Contains(text, "rate_limit_error") {
			t.Errorf("%s as Anthropic's: %d %s", name, resp.StatusCode, text)
		}
	}
	for _, line := range []string{`roundhouse_key_budget_used{key="few",kind="requests",period="day"} 2`, `roundhouse_key_budget_left{key="few",kind="requests",period="day"} 0`, `roundhouse_key_budget_used{key="words",kind="tokens_out",period="day"} 24`} {
		if !strings.Contains(r.metrics(), line) {
			t.Errorf("the metrics have no %s", line)
		}
	}
	_, text := admin("GET", "/api/usage", "")
	var u control.Usage
	if err := json.Unmarshal([]byte(text), &u); err != nil || len(u.Rows) != 2 || u.Rows[0].Key != "few" || u.Rows[0].Model != "sim" || u.Rows[0].Requests != 2 || u.Rows[0].TokensOut != 24 || u.Rows[0].TokensIn == 0 {
		t.Errorf("%v %s", err, text)
	}
	if status, text := admin("GET", "/api/usage?from=yesterday", ""); status != 400 || !strings.Contains(text, "2026-11-22") {
		t.Error(status, text)
	}
}

// TestCutStreamCounts: of a stream whose client leaves, what was sent counts.
func TestCutStreamCounts(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 1000, Pace: 5 * time.Millisecond})
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) {
		s.Epoch = 0
		s.Keys = []configs.Key{{Name: "k", SHA256: []string{hashOf("k")}, Models: []string{"*"}, Day: configs.Budget{Tokens: 1e6}}}
	})
	admin := adminOf(t, r, keyfile.Open(""))
	req, err := http.NewRequest("POST", r.url+"/v1/chat/completions", strings.NewReader(fmt.Sprintf(chatBody, true, "")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer k")
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 2000)); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	r.until("it is counted", func() bool {
		_, text := admin("GET", "/api/usage", "")
		var u control.Usage
		if err := json.Unmarshal([]byte(text), &u); err != nil {
			t.Fatal(err)
		}
		return len(u.Rows) == 1 && u.Rows[0].Requests == 1 && u.Rows[0].TokensOut > 2 && u.Rows[0].TokensOut < 1000 && u.Rows[0].TokensIn > 0
	})
}
