package test

import (
	"slices"
	"strings"
	"testing"

	"roundhouse/test/differential"
)

// sentFile holds requests of clients that are too large for every run; TestLargeClients
// writes it.
const sentFile = "testdata/sent.jsonl"

// TestSent repeats the requests of `vllm bench serve`, guidellm and
// lm-evaluation-harness: worker and door answer alike, with all that these programs
// count.
func TestSent(t *testing.T) {
	requests, err := differential.Lines[differential.Request](sentFile)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, strings.Replace(twoWorkers, "%s", "", 1))
	worker := s.known()[0].URL
	met := map[string]int{}
	for _, q := range requests {
		met[q.Name+" "+q.Path]++
		direct, err := q.Ask(worker)
		if err != nil {
			t.Fatal(err)
		}
		through, err := q.Ask(s.Door)
		if err != nil {
			t.Fatal(err)
		}
		if direct.Status != 200 {
			t.Fatalf("%s %s: %d %+v", q.Name, q.Path, direct.Status, direct.Error)
		}
		greedy := strings.Contains(string(q.Body), `"temperature":0`)
		for _, d := range differential.Compare(direct, through) {
			// Texts that are drawn at random are others; and the door, which asks for ids of
			// its own, takes their keys out.
			if d.Kind == "text" && !greedy || d.Kind == "keys" {
				continue
			}
			t.Errorf("%s %s %s: door and worker: %s", q.Name, q.Path, q.Body, d)
		}
		counted(t, &q, through)
	}
	for _, kind := range []string{
		"vllmbench /v1/chat/completions", "vllmbench /v1/completions", "vllmbench /tokenize", "guidellm /health", "guidellm /v1/chat/completions",
		"guidellm /v1/completions", "lmeval /v1/completions", "lmeval /v1/chat/completions",
	} {
		if met[kind] == 0 {
			t.Errorf("%s: no request is recorded", kind)
		}
	}
}

// counted holds an answer to the figures that the programs take from it.
func counted(t *testing.T, q *differential.Request, a *differential.Answer) {
	t.Helper()
	scored := q.Name == "lmeval" && strings.Contains(string(q.Body), `"echo":true`)
	streams := strings.Contains(string(q.Body), `"stream"`)
	switch {
	case !strings.HasPrefix(q.Path, "/v1/"):
	case scored && (a.Completion != 1 || len(a.Logprobs) != a.Prompt): // of every token but the first
		t.Errorf("%s: %d log-probabilities of %d tokens, %d generated", q.Body, len(a.Logprobs), a.Prompt, a.Completion)
	case streams && (a.Completion != 8 || a.Count < 8 || a.Prompt == 0):
		t.Errorf("%s: %d tokens in %d events behind %d", q.Body, a.Completion, a.Count, a.Prompt)
	case q.Name == "lmeval" && !scored && !slices.ContainsFunc(a.Text, func(s string) bool { return strings.Contains(s, " = ") }):
		t.Errorf("%s: %q", q.Body, a.Text)
	}
}
