package balancer_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// The canaries: what must appear nowhere but in the requests themselves.
const (
	canaryKey    = "sk-canary-of-a-client"
	canaryWrong  = "sk-canary-of-a-stranger"
	canaryPrompt = "canary-prompt-7f3a"
	canaryWorker = "canary-key-of-a-worker"
)

// journal gathers a log that several goroutines write.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// TestSecrets makes a door fail in every way there is, with a key, a prompt and
// a worker's key that can be known again, and looks for them in all that the
// door says: its log at the most talkative, its answers, its metrics and its
// private API.
func TestSecrets(t *testing.T) {
	for _, through := range []bool{false, true} {
		t.Run(fmt.Sprintf("fasthttp=%v", through), func(t *testing.T) {
			viaFasthttp = through
			defer func() { viaFasthttp = false }()
			testSecrets(t)
		})
	}
}

func testSecrets(t *testing.T) {
	log := &journal{}
	doorLog = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	doorAccess = log
	defer func() { doorLog, doorAccess = nil, nil }()
	good := sim.New(sim.Options{Words: 5})
	dying := sim.New(sim.Options{Own: true, Words: 20, Pace: time.Millisecond})
	sum := sha256.Sum256([]byte(canaryKey))
	r := newRig(t, []*sim.Worker{good, dying}, func(s *control.WorkerSet) {
		s.Log.Access = true
		s.Door.Memory = 1 << 20
		s.Door.Limits.Body = 2 << 20
		s.Door.Limits.BodyIdle = configs.Duration(200 * time.Millisecond)
		s.Door.Keys = []configs.Key{{Name: "team", SHA256: []string{hex.EncodeToString(sum[:])}, Models: []string{"*"}}}
		for i := range s.Pools[0].Workers {
			s.Pools[0].Workers[i].APIKey = canaryWorker
		}
		s.Door.Queue.MaxWait = configs.Duration(300 * time.Millisecond)
	})
	more := r.set
	more.Version = 2
	more.Pools = append(more.Pools[:1:1], control.Pool{Name: "gone", Models: []string{"gone"}, Workers: []control.Worker{
		{Name: "1", URL: "http://127.0.0.1:1", Generation: 1, Kind: "vllm", State: "ready", APIKey: canaryWorker}}})
	if _, err := r.door.Apply(more); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder // all that the door answered
	ask := func(key, path, body string, header ...string) {
		resp, text := r.post(path, body, append([]string{"Authorization", "Bearer " + key}, header...)...)
		fmt.Fprintln(&said, resp.StatusCode, resp.Header, text)
	}
	raw := func(payload string) {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, payload)
		c.SetReadDeadline(time.Now().Add(time.Minute))
		answer, _ := io.ReadAll(c)
		fmt.Fprintf(&said, "%s\n", answer)
	}
	chat := func(model string, stream bool, more string) string {
		return fmt.Sprintf(`{"model":%q,"stream":%v,"messages":[{"role":"user","content":%q}]%s}`, model, stream, canaryPrompt, more)
	}
	head := "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer " + canaryKey + "\r\n"

	const path = "/v1/chat/completions"
	ask(canaryKey, path, chat("sim", false, ""))
	ask(canaryKey, path, chat("sim", true, ""))
	ask(canaryWrong, path, chat("sim", false, ""))                      // 401
	ask(canaryKey, path, chat("nobody", false, ""))                     // 404
	ask(canaryKey, "/"+canaryPrompt, chat("sim", false, ""))            // 404, the path is said back to its client alone
	ask(canaryKey, path, chat("gone", false, ""))                       // no worker
	ask(canaryKey, path, chat("gone", true, ""))                        //
	ask(canaryKey, path, chat("sim", false, `,"n":"`+canaryPrompt+`"`)) // a field of the wrong type
	ask(canaryKey, path, chat("sim", false, "")[:60])                   // cut off
	ask(canaryKey, path, chat("sim", false, ""), "Content-Type", "text/"+canaryPrompt)
	ask(canaryKey, path, chat("sim", false, ""), "Content-Encoding", canaryPrompt)
	ask(canaryKey, path, chat("sim", false, ""), "X-Roundhouse-Priority", canaryPrompt)
	ask(canaryKey, path, chat("sim", false, ""), "X-Request-Id", canaryKey+"!") // no valid id
	ask(canaryKey, path, chat("sim", false, strings.Repeat(" ", 1500<<10)))     // memory
	ask(canaryKey, "/v1/audio/transcriptions", canaryPrompt, "Content-Type", "multipart/form-data; boundary="+canaryPrompt)
	raw(head + "Content-Length: 5000\r\n\r\n" + canaryPrompt)                                    // 408
	raw(head + "Content-Length: 99999999\r\n\r\n" + canaryPrompt)                                // 413
	raw(head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + canaryPrompt)                        // 400
	raw(head + "X-Prompt: " + canaryPrompt + "\x00\r\n\r\n")                                     // 400
	raw(canaryPrompt + " / HTTP/1.1\r\nHost: " + canaryPrompt + "\r\nConnection: close\r\n\r\n") // 501
	for _, status := range []int64{400, 429, 500, 503} {
		good.Status.Store(status)
		dying.Status.Store(status)
		ask(canaryKey, path, chat("sim", false, ""))
		ask(canaryKey, path, chat("sim", true, ""))
	}
	good.Status.Store(0)
	dying.Status.Store(0)
	good.DieAfter.Store(3)
	dying.DieAfter.Store(3)
	ask(canaryKey, path, chat("sim", true, ""))       // died in the middle, resumed or not
	ask(canaryKey, path, chat("sim", true, `,"n":2`)) // cannot be resumed
	ask(canaryKey, "/v1/completions", `{"model":"sim","stream":true,"prompt":"`+canaryPrompt+`"}`)
	for _, p := range []string{"/metrics", "/v1/models", "/health"} {
		resp, err := r.client.Get(r.url + p)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Fprintf(&said, "%s\n", text)
	}
	private := httptest.NewServer(r.door.Private())
	defer private.Close()
	for _, p := range []string{"/state", "/requests", "/queue", "/plugins"} {
		resp, err := http.Get(private.URL + p)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode == 200 && !json.Valid(text) {
			t.Errorf("%s: not JSON: %s", p, text)
		}
		fmt.Fprintf(&said, "%s\n", text)
	}
	http.DefaultClient.CloseIdleConnections()
	r.door.Apply(control.WorkerSet{Schema: 1, Epoch: 1, Version: 3, Pools: []control.Pool{{Name: "p"}, {Name: "p"}}})

	for what, text := range map[string]string{"the log": log.String(), "an answer": said.String()} {
		for _, secret := range []string{canaryKey, canaryWrong, canaryWorker, hex.EncodeToString(sum[:])} {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s holds the secret %q: …%q", what, secret, text[max(0, at-200):min(len(text), at+100)])
			}
		}
	}
	if at := strings.Index(log.String(), canaryPrompt); at >= 0 {
		t.Errorf("the log holds a prompt: …%q", log.String()[max(0, at-200):min(log.b.Len(), at+100)])
	}
	if got := said.String(); strings.Count(got, canaryPrompt) > 1 {
		t.Errorf("an answer says a prompt back: %q", got[strings.LastIndex(got, canaryPrompt)-100:])
	}
	if log.b.Len() == 0 || !strings.Contains(log.String(), "worker failed") && !strings.Contains(log.String(), "stream broke") {
		t.Errorf("the log says nothing of the failures:\n%s", log.String())
	}
}
