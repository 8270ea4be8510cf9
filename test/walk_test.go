package test

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"go/ast"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// finding is what a stranger broke once: by the bytes that it took, if a client's socket
// is enough, and by the tests that hold it, as "folder Test".
type finding struct {
	id    string
	steps []step
	held  []string
}

// step is one request, byte by byte, and its answer. Each of want stands in the answer's
// head or body; behind an exclamation mark, it does not.
type step struct {
	raw    string
	status int // 0: any that comes
	want   []string
}

// request is a request's bytes. fields end in CRLF each.
func request(method, path, fields, body string) string {
	if body != "" {
		fields += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	return method + " " + path + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n" + body
}

// as is a request of JSON with a key.
func as(key, path, body string) string {
	return request("POST", path, "Content-Type: application/json\r\nAuthorization: Bearer "+key+"\r\n", body)
}

// chat asks the stranger's engine for what the word says; more are further fields.
func chat(word, more string) string {
	return fmt.Sprintf(`{"model":"odd","max_tokens":8,"messages":[{"role":"user","content":%q}]%s}`, word, more)
}

const (
	chats   = "/v1/chat/completions"
	picture = `{"model":"odd","messages":[{"role":"user","content":[{"type":"text","text":%q},{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}]%s}`
	schema  = `,"stream":true,"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object","properties":{"text":{"type":"string"}}}}}`
	form    = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nodd\r\n--b\r\nContent-Disposition: form-data; name=\"stream\"\r\n\r\ntrue\r\n--b--\r\n"
)

// findings are all of them. Those without steps are not within a client's reach.
var findings = []finding{
	{"A1", []step{
		{as("one", "/v1/embeddings", `{"model":"odd","input":[`+strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("word ", 400)+`",`, 100), ",")+`]}`), 200, []string{"50101"}},
		{as("one", chats, fmt.Sprintf(picture, "look", strings.Repeat("QUJD", 50_000), "")), 200, []string{`"stop"`}},
	}, []string{"balancer TestEstimateRefusesNobody"}},
	{"A2", nil, []string{"balancer TestSlowPromptIsNotHung", "balancer/fleet TestPatience", "supervisor TestSilenceIsNotHung"}},
	{"A3", nil, []string{"balancer TestTrialServesAll"}},
	{"A4", append(slices.Repeat([]step{{as("one", chats, chat("fails", "")), 500, nil}}, 6), step{as("two", chats, chat("hi", "")), 200, nil}),
		[]string{"balancer TestLastWorkerStays"}},
	{"A5", []step{{as("one", chats, chat("dies with two", `,"stream":true,"n":2`)), 200, []string{"[DONE]", `"index":1,"delta":{"content":"gone on`, "!error"}}},
		[]string{"balancer/resume TestDeath"}},
	{"A6", []step{{as("one", chats, chat("dies asked for a form", schema)), 200, []string{"[DONE]", "form: true", "!error"}}}, []string{"balancer/resume TestPlainAsked"}},
	{"A7", []step{{as("one", chats, fmt.Sprintf(picture, "dies with a picture", "QUJD", `,"stream":true`)), 200, []string{"[DONE]", "picture: true", "!error"}}},
		[]string{"balancer/resume TestPlainAsked"}},
	{"A8", []step{{as("one", chats, chat("dies in thought", `,"stream":true`)), 200, []string{"[DONE]", `"reasoning":"hm"`, `"reasoning":"so"`, `"content":"said"`, "!reasoning_content", "!</think>", "!error"}}},
		[]string{"balancer/resume TestDeath"}},
	{"A9", slices.Repeat([]step{{request("POST", chats, "Content-Length: 62914560\r\n", "") + "{", 401, []string{"invalid_api_key"}}}, 4),
		[]string{"balancer TestAnnouncedHoldsNothing"}},
	{"A10", append(slices.Repeat([]step{{as("poor", chats, chat(strings.Repeat("word", 1100), `,"stream":true,"n":2`)), 0, nil}}, 8),
		step{as("poor", chats, chat(strings.Repeat("word", 1100), `,"stream":true,"n":2`)), 429, []string{"Retry-After: "}}), []string{"balancer TestUnsaidUsageIsCharged"}},
	{"A11", slices.Repeat([]step{{request("GET", "/metrics", "", ""), 200, []string{"roundhouse_"}}}, 30), []string{"balancer TestWorkersAreAskedOnce"}},
	{"A12", []step{
		{as("one", "/v1/responses", `{"model":"odd","input":"x"}`), 200, []string{"resp_walk"}},
		{request("GET", "/v1/responses/resp_walk", "Authorization: Bearer two\r\n", ""), 404, nil},
		{request("DELETE", "/v1/responses/resp_walk", "Authorization: Bearer two\r\n", ""), 404, nil},
		{as("two", "/v1/responses", `{"model":"odd","input":"x","previous_response_id":"resp_walk"}`), 404, nil},
		{request("GET", "/v1/responses/resp_walk", "Authorization: Bearer one\r\n", ""), 200, []string{"resp_walk"}},
	}, []string{"balancer TestStoredIsItsKeys"}},
	{"A13", nil, []string{"supervisor TestCertificateFollowsNoLink", "supervisor TestCertificateLiesInRootsFolder"}},
	{"A14", nil, []string{"supervisor/core TestOneWorkerDelaysNoOther", "supervisor/core TestServedFirst"}},
	{"A15", nil, []string{"supervisor TestAbsentDoorHoldsNobody"}},
	{"A16", nil, []string{"supervisor TestSlowAdminDelaysNobody"}}, // and the socket that the walk leaves open at the admin API
	{"A17", nil, []string{"supervisor TestRefusedLeavesNoTrace"}},
	{"A18", nil, []string{"supervisor TestMissingCardCostsItsWorkerAlone"}},
	{"A19", nil, []string{"balancer TestCertificateRenewed", "balancer TestOldOneStays", "balancer TestHTTP2"}},
	{"A20", nil, []string{"supervisor/core TestPullIsNotOfTheReadyTime"}},
	{"A21", nil, []string{"compose TestUnitStarted"}},
	{"A22", nil, []string{"compose/guard TestCreate", "compose/guard FuzzCreate"}},
	{"A23", nil, []string{"compose/guard TestCreate", "compose/guard TestEveryField"}},
	{"A24", nil, []string{"compose/guard TestCreate", "compose/guard TestCreateFor"}},
	{"A25", nil, []string{"compose/guard TestImages"}},
	{"A26", nil, []string{"balancer TestDrainRefuses", "supervisor TestEndRefuses"}},
	{"A27", nil, []string{"configs TestDoorRefuses"}},
	{"A28", nil, []string{"cmd/roundhouse TestReloadKeepsDrains", "cmd/roundhouse TestDrainWaits"}},
	{"A29", []step{{request("OPTIONS", chats, "Origin: http://page\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: x-stainless-lang,anthropic-version\r\n", ""), 204,
		[]string{"Access-Control-Allow-Headers: x-stainless-lang,anthropic-version"}}}, []string{"balancer TestPreflight"}},
	{"A30", nil, []string{"configs TestDoorRefuses", "balancer/fleet TestScrapeKeys"}},
	{"B1", nil, []string{"supervisor/process TestLogsStayBounded"}},
	{"B2", nil, []string{"balancer TestOldOneStays", "balancer TestReloadRefusesWhole"}},
	{"B3", nil, []string{"supervisor/core TestMovedImageIsRolledOut", "supervisor/core TestMovedImageIsRolledBack", "supervisor/docker TestMovedTag"}},
	{"B4", nil, []string{"balancer TestRequestsWaitForTheGap", "supervisor TestSetTellsOfGaps"}},
	{"B5", nil, []string{"supervisor/docker TestElsewhere", "supervisor/docker TestPublishedURL"}},
	{"B6", []step{{as("one", chats, chat("forbids fields", `,"stream":true`)), 200, []string{"[DONE]", "!error"}}}, []string{"balancer TestForbiddenField", "balancer/resume TestStrictWorker"}},
	{"B7", nil, []string{"compose/guard TestRace", "compose/guard TestIdentity", "compose/guard TestCreateFor"}},
	{"B8", []step{{as("one", "/v1/embeddings", `{"model":"odd","input":"at length"}`), 200, []string{"the end"}}}, []string{"balancer TestLongAnswersPass", "balancer TestIDsTakeMemory"}},
	{"B9", []step{{request("POST", "/v1/audio/transcriptions", "Authorization: Bearer one\r\nContent-Type: multipart/form-data; boundary=b\r\n", form), 200, []string{"first", "second"}}},
		[]string{"balancer TestStreamedThrough"}},
	{"B10", nil, []string{"supervisor TestSetTellsOfGaps"}},
	{"B11", []step{{as("one", "/v1/messages", `{"model":"none","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`), 404, []string{`{"type":"error","error":{"type":"not_found_error"`}}},
		[]string{"balancer TestMessagesGoOn", "balancer TestMessagesErrors"}},
	{"B12", nil, []string{"balancer/fleet TestRetriesAreOfAWindow", "balancer/fleet TestDrainEnd", "balancer TestInFlightResumes", "balancer/wire TestMeasure"}},
	{"B13", nil, []string{"supervisor TestReadToken", "cmd/roundhouse TestHandedOn", "supervisor TestForgets"}},
	{"B14", []step{
		{request("GET", "http://b/v1/models", "Authorization: Bearer one\r\nX_Odd: 1\r\n", ""), 200, []string{"Date: ", "roundhouse-demo"}},
		{request("GET", chats, "Authorization: Bearer one\r\n", ""), 405, []string{"Allow: POST", "Date: "}},
	}, []string{"balancer TestMethodsAreNamed", "balancer TestAttacks", "balancer TestAnswersAreDated", "balancer TestAccessLog", "balancer/wire TestReadProxy"}},
	{"a body that ended both workers of the quick start", []step{{as("one", chats, `{"model":"roundhouse-demo","max_tokens":4,"temperature":1,"min_p":0.1,"repetition_penalty":1e-40,"messages":[{"role":"user","content":"x"}]}`), 0, nil}}, []string{"worker/launch TestSurvives"}},
}

// engine is a vLLM as strangers run it. It does what the prompt's words say.
type engine struct {
	*httptest.Server
	died  *sync.Map     // the words at which one of the engines has died already
	heard chan struct{} // closed when the client has the first event
}

func newEngine(t *testing.T, died *sync.Map, heard chan struct{}) *engine {
	e := &engine{died: died, heard: heard}
	m := http.NewServeMux()
	m.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"data":[{"id":"odd","max_model_len":32768}]}`)
	})
	m.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"62500\"} 1\n")
	})
	m.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	m.HandleFunc("/v1/responses/", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"id":"resp_walk"}`) })
	m.HandleFunc("POST /v1/responses", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"id":"resp_walk"}`) })
	m.HandleFunc("POST /v1/embeddings", func(w http.ResponseWriter, r *http.Request) {
		long := 0
		if text, _ := io.ReadAll(r.Body); strings.Contains(string(text), "at length") {
			long = 17 << 20
		}
		fmt.Fprintf(w, `{"data":%q,"usage":{"prompt_tokens":50101,"total_tokens":50101},"is":"the end"}`, strings.Repeat("x", long))
	})
	m.HandleFunc("POST /v1/audio/transcriptions", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"text\":\"first\"}\n\n")
		w.(http.Flusher).Flush()
		<-e.heard
		io.WriteString(w, "data: {\"text\":\"second\"}\n\n")
	})
	m.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, _ *http.Request) { // who goes on here has lost what the chat asked for
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, `data: {"id":"1","object":"text_completion","created":1,"model":"odd","choices":[{"index":0,"text":"gone on</think>","finish_reason":"stop","token_ids":[7]}]}`+"\n\ndata: [DONE]\n\n")
	})
	m.HandleFunc("POST "+chats, e.chat)
	e.Server = httptest.NewServer(m)
	t.Cleanup(e.Close)
	t.Cleanup(e.CloseClientConnections)
	return e
}

var deaths = regexp.MustCompile(`dies [a-z ]+`)

// chat answers a chat: an event for each delta, and dies behind the first part of them
// where the prompt says so, once.
func (e *engine) chat(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	body := string(raw)
	says := func(word string) bool { return strings.Contains(body, word) }
	switch ids := says(`"return_token_ids"`); {
	case says("fails"):
		http.Error(w, `{"error":{"message":"it fails","code":500}}`, 500)
		return
	case says("forbids fields") && ids:
		http.Error(w, `{"error":{"message":"extra_forbidden: body.return_token_ids","code":400}}`, 400)
		return
	case !says(`"stream":true`):
		io.WriteString(w, `{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
		return
	}
	first, rest := []string{`0,"delta":{"content":"a"}`}, []string{`0,"delta":{"content":"b"}`, `0,"delta":{},"finish_reason":"stop"`}
	switch {
	case says("with two"):
		first = []string{`0,"delta":{"content":"0a"}`, `1,"delta":{"content":"1a"}`, `0,"delta":{},"finish_reason":"stop"`}
		rest = []string{`1,"delta":{"content":"1b"}`, `1,"delta":{},"finish_reason":"stop"`}
	case says("in thought"):
		first = []string{`0,"delta":{"reasoning":"hm"}`}
		rest = append([]string{`0,"delta":{"reasoning":"so"}`, `0,"delta":{"content":"said"}`}, rest[1])
	case says("a form"), says("a picture"):
		rest[0] = fmt.Sprintf(`0,"delta":{"content":"form: %v, picture: %v"}`, says(`"response_format"`), says(`"image_url"`))
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for i, c := range append(first, rest...) {
		if i == len(first) {
			w.(http.Flusher).Flush()
			if word := deaths.FindString(body); word != "" {
				if _, already := e.died.LoadOrStore(word, true); !already {
					panic(http.ErrAbortHandler)
				}
			}
		}
		fmt.Fprintf(w, `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"odd","prompt_token_ids":[1,2,3],"choices":[{"index":%s,"token_ids":[%d]}]}`+"\n\n", c, 1000+i)
	}
	io.WriteString(w, "data: [DONE]\n\n")
}

// walk is a running program, and a client beside the walk that nothing may disturb.
type walk struct {
	*system
	addr   string
	before []worker
	heard  chan struct{}
	whole  atomic.Int64 // answers of the client
	failed atomic.Pointer[error]
}

// newWalk starts two workers of ours beside two of a stranger's, and leaves open at each
// of the program's sockets what once held others up.
func newWalk(t *testing.T) *walk {
	t.Helper()
	w := &walk{heard: make(chan struct{})}
	pool, died := fmt.Sprintf(twoWorkers, "")+"pool \"odd\" {\n  driver = \"static\"\n", new(sync.Map)
	for i := range 2 {
		pool += fmt.Sprintf("  worker \"w%d\" {\n    url = %q\n  }\n", i, newEngine(t, died, w.heard).URL)
	}
	path, door, admin := writeConfig(t, pool+"}\n")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fields := "  memory = \"64MiB\"\n  cors {\n    origins = [\"*\"]\n  }\n"
	for _, k := range []string{"one", "two", "poor"} {
		limit := ""
		if k == "poor" {
			limit = "    tokens_per_minute = 2000\n"
		}
		fields += fmt.Sprintf("  key %q {\n    sha256 = [\"%x\"]\n%s  }\n", k, sha256.Sum256([]byte(k)), limit)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "door {\n", "door {\n"+fields, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	w.system, w.addr = startAt(t, path, door, admin), door
	poll(t, "the door knows the stranger's model", func() bool {
		_, got := w.say(t, door, request("GET", "/v1/models", "Authorization: Bearer one\r\n", ""), nil)
		return strings.Contains(got, `"odd"`)
	}, w.out.String)
	w.before = w.known()
	for addr, raw := range map[string]string{ // a beginning, and no more
		door:  request("POST", chats, "Authorization: Bearer one\r\nContent-Length: 62914560\r\n", "") + "{",
		admin: request("POST", "/api/pools/chat/rotate", "Content-Type: application/json\r\nContent-Length: 20\r\n", "") + "{",
	} {
		c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := io.WriteString(c, raw); err != nil {
			t.Fatal(err)
		}
	}
	w.accompany(t)
	return w
}

// say sends bytes, and returns the status of the answer, and its head and body. At the
// body's first bytes it closes heard.
func (w *walk) say(t *testing.T, addr, raw string, heard chan struct{}) (int, string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	go io.WriteString(c, raw) // who is refused by its head alone sends on
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: raw[:strings.IndexByte(raw, ' ')]})
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer resp.Body.Close()
	var head strings.Builder
	resp.Header.Write(&head)
	begin := make([]byte, 1)
	n, err := resp.Body.Read(begin)
	if heard != nil {
		close(heard)
	}
	rest, rerr := io.ReadAll(resp.Body)
	if err != nil && err != io.EOF || rerr != nil {
		t.Errorf("the answer is cut: %v %v", err, rerr)
	}
	return resp.StatusCode, head.String() + "\n" + string(begin[:n]) + string(rest)
}

// take takes one step.
func (w *walk) take(t *testing.T, i int, s step) {
	t.Helper()
	var heard chan struct{}
	if strings.Contains(s.raw, "/audio/") {
		heard = w.heard
	}
	status, got := w.say(t, w.addr, s.raw, heard)
	if s.status != 0 && status != s.status {
		t.Errorf("step %d: %d; want %d: %.600s", i, status, s.status, got)
	}
	for _, want := range s.want {
		if without, no := strings.CutPrefix(want, "!"); strings.Contains(got, without) == no {
			t.Errorf("step %d: want %q: %.3000s", i, want, got)
		}
	}
}

// accompany has a client count on one connection all along; each answer is as the first.
func (w *walk) accompany(t *testing.T) {
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	raw := as("two", chats, `{"model":"roundhouse-demo","stream":true,"temperature":0,"max_tokens":200,"messages":[{"role":"user","content":"Count from 1 to 12 by 1."}]}`)
	word := regexp.MustCompile(`"content":"([^"]*)"`)
	var ended atomic.Bool
	done := make(chan struct{})
	t.Cleanup(func() { ended.Store(true); <-done; c.Close() })
	go func() {
		defer close(done)
		in := bufio.NewReader(c)
		for !ended.Load() {
			c.SetDeadline(time.Now().Add(patience))
			io.WriteString(c, raw)
			resp, err := http.ReadResponse(in, nil)
			text := ""
			if err == nil {
				var body []byte
				body, err = io.ReadAll(resp.Body)
				for _, m := range word.FindAllSubmatch(body, -1) {
					text += string(m[1])
				}
			}
			if err == nil && (resp.StatusCode != 200 || !strings.Contains(text, "1 2 3 4 5 6 7 8 9 10 11 12")) {
				err = fmt.Errorf("%d %q", resp.StatusCode, text)
			}
			if err != nil {
				w.failed.Store(&err)
				return
			}
			w.whole.Add(1)
		}
	}()
}

// undisturbed waits for an answer that the client beside began after the finding's steps.
func (w *walk) undisturbed(t *testing.T) {
	t.Helper()
	since := w.whole.Load()
	poll(t, "the client beside goes on", func() bool {
		if err := w.failed.Load(); err != nil {
			t.Fatalf("the client beside: %v", *err)
		}
		return w.whole.Load() > since+1
	}, w.out.String)
}

// TestWalk walks through all that strangers broke: with their bytes at the running
// program, beside a client that nothing may disturb; what no client reaches, by the
// tests that hold it.
func TestWalk(t *testing.T) {
	there, ids := map[string]bool{}, map[string]bool{}
	for _, f := range goFiles(t) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && f.test() {
				there[filepath.ToSlash(filepath.Dir(f.path))+" "+fn.Name.Name] = true
			}
		}
	}
	w := newWalk(t)
	for _, f := range findings {
		ids[f.id] = true
		t.Run(f.id, func(t *testing.T) {
			for _, name := range f.held {
				if !there[name] {
					t.Errorf("there is no %s", name)
				}
			}
			if f.held == nil {
				t.Error("no test holds it")
			}
			for i, s := range f.steps {
				w.take(t, i, s)
			}
			if f.steps != nil {
				w.undisturbed(t)
			}
		})
	}
	for letter, n := range map[string]int{"A": 30, "B": 14} {
		for i := range n {
			if id := fmt.Sprint(letter, i+1); !ids[id] {
				t.Errorf("%s is left out", id)
			}
		}
	}
	if after := w.known(); !slices.Equal(after, w.before) {
		t.Errorf("workers %+v became %+v", w.before, after)
	}
}
