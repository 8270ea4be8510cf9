package data

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roundhouse/measure/bench"
)

func seeded() *rand.Rand { return rand.New(rand.NewPCG(7, 7)) }

// tokenizer counts a token for each four letters of a word, as a service would.
func tokenizer(t *testing.T) *Counter {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Prompt string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/tokenize" {
			http.NotFound(w, r)
			return
		}
		json.NewEncoder(w).Encode(map[string]int{"count": tokensOf(body.Prompt)}) //nolint:errcheck // the test would see it
	}))
	t.Cleanup(server.Close)
	return &Counter{Base: server.URL, HTTP: server.Client()}
}

func tokensOf(text string) int {
	n := 0
	for _, word := range strings.Fields(text) {
		n += (len(word) + 3) / 4
	}
	return n
}

// Prompts have exactly the asked lengths, by the service's own count.
func TestLengths(t *testing.T) {
	w, err := CountWords(context.Background(), tokenizer(t))
	if err != nil {
		t.Fatal(err)
	}
	all, err := Random(50, Lengths{Input: 100, Output: 20, Prefix: 30, Range: 0.5}, w, seeded())
	if err != nil {
		t.Fatal(err)
	}
	prefix := ""
	low, high := 1000, 0
	for i, q := range all {
		n := tokensOf(q.Prompt)
		if n != q.PromptTokens || n < 80 || n > 180 || q.Output < 10 || q.Output > 30 {
			t.Fatalf("request %d has %d tokens, says %d, and asks for %d", i, n, q.PromptTokens, q.Output)
		}
		low, high = min(low, n), max(high, n)
		words := strings.Fields(q.Prompt)
		if i == 0 {
			prefix = strings.Join(words[:8], " ")
		} else if strings.Join(words[:8], " ") != prefix {
			t.Fatal("random prompts with a prefix begin alike")
		}
	}
	if high-low < 50 {
		t.Errorf("lengths go from %d to %d; want them spread by half of 100", low, high)
	}

	shared, err := PrefixRepetition(40, Repetition{Prefix: 64, Suffix: 16, Prefixes: 4, Output: 8}, w, seeded())
	if err != nil {
		t.Fatal(err)
	}
	begins := map[string]int{}
	for _, q := range shared {
		begins[strings.Join(strings.Fields(q.Prompt)[:16], " ")]++
		if tokensOf(q.Prompt) != 80 {
			t.Fatalf("a prompt has %d tokens; want 80", tokensOf(q.Prompt))
		}
	}
	if len(begins) != 4 || len(shared) != 40 {
		t.Errorf("%d prompts begin in %d ways; want 40 in 4", len(shared), len(begins))
	}
}

// A service without /tokenize counts by the usage of its answers.
func TestWithoutTokenize(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Messages []struct{ Content string } }
		if r.URL.Path != "/v1/chat/completions" || json.NewDecoder(r.Body).Decode(&body) != nil {
			http.NotFound(w, r)
			return
		}
		n := 9 + 2*len(strings.Fields(body.Messages[0].Content))                               // two tokens a word
		json.NewEncoder(w).Encode(map[string]any{"usage": map[string]int{"prompt_tokens": n}}) //nolint:errcheck // the test would see it
	}))
	defer server.Close()
	w, err := CountWords(context.Background(), &Counter{Base: server.URL, HTTP: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	text, n := w.Text(200, seeded())
	if got := 2 * len(strings.Fields(text)); got != 200 || n != 200 {
		t.Errorf("a text of 200 tokens has %d, and says %d", got, n)
	}
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTraces(t *testing.T) {
	w, err := CountWords(context.Background(), tokenizer(t))
	if err != nil {
		t.Fatal(err)
	}
	azure, err := ReadTrace(write(t, "code.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.4799600,110,27\n"), 0)
	if err != nil || len(azure) != 2 || azure[1].At != 500*time.Millisecond || azure[0].Input != 4808 || azure[1].Output != 27 {
		t.Fatalf("%+v, %v", azure, err)
	}
	rows, err := ReadTrace(write(t, "talk.jsonl", `{"timestamp": 100, "input_length": 40, "output_length": 5, "hash_ids": [1, 2]}
{"timestamp": 1100, "input_length": 37, "output_length": 6, "hash_ids": [1, 3]}
`), time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	all := Replay(rows, 2, 16, 0, w, seeded())
	if all[1].At != 500*time.Millisecond {
		t.Errorf("at twice its speed the second request comes after %s; want 500ms", all[1].At)
	}
	a, b := strings.Fields(all[0].Prompt), strings.Fields(all[1].Prompt)
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	if n := tokensOf(strings.Join(a[:same], " ")); n < 16 || n > 20 {
		t.Errorf("the prompts share %d tokens; want their first block of 16 and its mark", n)
	}
}

// What is wrong with a file is told with its line.
func TestBadFiles(t *testing.T) {
	f := func(want string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %q", err, want)
		}
	}
	read := func(name, text string) error {
		_, err := ReadTrace(write(t, name, text), time.Second)
		return err
	}
	f("t.csv:1: want the columns", read("t.csv", "A,B\n1,2\n"))
	f("t.csv:2:", read("t.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,2\n"))
	f("want two numbers", read("t.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,x,2\n"))
	f("t.jsonl:2:", read("t.jsonl", `{"timestamp":1,"input_length":2,"output_length":3}`+"\n{\n"))
	_, err := Custom(write(t, "c.jsonl", `{"prompt":"a"}`+"\n\n"+`{"text":"b"}`+"\n"), 5)
	f(`c.jsonl:3: there is no "prompt"`, err)
	_, err = Custom(write(t, "c.jsonl", `{"prompt":"a"}`+"\n"), -1)
	f(`there is no "output_tokens"`, err)
	_, err = ShareGPT(write(t, "s.json", `{"a":1}`), 0)
	f("want a list", err)
}

func TestFiles(t *testing.T) {
	all, err := Custom(write(t, "c.jsonl", `{"prompt":"a","output_tokens":3}`+"\n"+`{"prompt":"b","output_tokens":4}`+"\n"), -1)
	if err != nil || len(all) != 2 || all[1] != (bench.Request{Prompt: "b", Output: 4}) {
		t.Errorf("%+v, %v", all, err)
	}
	if taken := Take(all, 5, true, seeded()); len(taken) != 5 {
		t.Errorf("%d requests; want 5 of 2, some again", len(taken))
	}
	if taken := Take(all, 5, false, seeded()); len(taken) != 2 {
		t.Errorf("%d requests; want no more than there are", len(taken))
	}
	long := strings.Repeat("a word ", 10)
	talks, err := ShareGPT(write(t, "s.json", `[{"conversations":[{"value":"`+long+`"},{"value":"`+long+`"}]},{"conversations":[{"value":"x"}]}]`), 0)
	if err != nil || len(talks) != 1 || talks[0].Output != 26 {
		t.Errorf("%+v, %v", talks, err)
	}
	q := Checked(1, seeded())[0]
	if !strings.HasPrefix(q.Prompt, "Count from ") || len(strings.Fields(q.Want)) < 11 {
		t.Errorf("%+v", q)
	}
}
