package server_test

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"roundhouse/worker"
	"roundhouse/worker/server"
	"roundhouse/worker/workertest"
)

func pooledRig(t *testing.T, kind server.Kind, width int) *rig {
	return newRig(t, func(s *server.Config, w *worker.Config) {
		s.Kind, s.Labels, w.PrefixCache = kind, []string{"NO", "YES", "MAYBE"}, false
		w.Exec.(*workertest.Model).Width = width
	})
}

func TestEmbeddings(t *testing.T) {
	r := pooledRig(t, server.Embeds, 8)
	one := r.ask("/v1/embeddings", object{"input": "one two three", "model": "m"})
	vector := fmt.Sprint(one["data"].([]any)[0].(object)["embedding"])
	if n := one["usage"].(object)["prompt_tokens"].(float64); int(n) != len(r.tok.Encode("one two three", tokenizerOptions)) {
		t.Fatalf("usage %v", one["usage"])
	}
	texts := make([]string, 100)
	for i := range texts {
		texts[i] = fmt.Sprint("text ", i)
	}
	texts[57] = "one two three"
	many := r.ask("/v1/embeddings", object{"input": texts})["data"].([]any)
	if len(many) != 100 || fmt.Sprint(many[57].(object)["embedding"]) != vector || fmt.Sprint(many[56].(object)["embedding"]) == vector {
		t.Fatalf("%d rows; row 57 is %v; want %s", len(many), many[57], vector)
	}
	ids := r.ask("/v1/embeddings", object{"input": r.tok.Encode("one two three", tokenizerOptions)})
	if got := fmt.Sprint(ids["data"].([]any)[0].(object)["embedding"]); got != vector {
		t.Fatalf("of ids: %s; want %s", got, vector)
	}
	packed := r.ask("/v1/embeddings", object{"input": "one two three", "encoding_format": "base64"})["data"].([]any)[0].(object)["embedding"].(string)
	raw, err := base64.StdEncoding.DecodeString(packed)
	if err != nil || len(raw) != 32 {
		t.Fatalf("%q: %v", packed, err)
	}
	var unpacked []any
	for i := range 8 {
		unpacked = append(unpacked, math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
	}
	if fmt.Sprint(unpacked...) == "" || fmt.Sprint(unpacked) != vector {
		t.Fatalf("unpacked %v; want %s", unpacked, vector)
	}
	if !r.engine.WaitIdle(t.Context()) || r.engine.Stats().Usage != 0 {
		t.Fatal("blocks are held")
	}
	f := func(path, body string, code int) {
		t.Helper()
		if got, data := r.post(path, body); got != code {
			t.Errorf("%s %s: %d %s; want %d", path, body, got, data, code)
		}
	}
	f("/v1/embeddings", `{}`, 400)
	f("/v1/embeddings", `{"input":[]}`, 400)
	f("/v1/embeddings", `{"input":""}`, 400)
	f("/v1/embeddings", `{"input":[[99999]]}`, 400)
	f("/v1/embeddings", `{"input":"x","dimensions":4}`, 400)
	f("/v1/embeddings", `{"input":"x","encoding_format":"int3"}`, 400)
	f("/v1/embeddings", `{"input":"x","model":"none"}`, 404)
	f("/v1/chat/completions", `{"messages":[]}`, 404)
	f("/classify", `{"input":"x"}`, 404)
	f("/pooling", `{"input":"x"}`, 200)
	long := object{"input": fmt.Sprint(make([]int, 600))}
	if code, data := r.post("/v1/embeddings", long); code != 400 {
		t.Errorf("too long: %d %s", code, data)
	}
	if u := r.ask("/v1/embeddings", with(long, "truncate_prompt_tokens", 7))["usage"].(object); u["prompt_tokens"].(float64) != 7 {
		t.Errorf("truncated: %v", u)
	}
	same := r.ask("/score", object{"text_1": "a b", "text_2": []string{"a b", "quite another"}})["data"].([]any)
	if s := same[0].(object)["score"].(float64); math.Abs(s-1) > 1e-6 || same[1].(object)["score"].(float64) >= s {
		t.Errorf("cosines %v", same)
	}
}

func TestScores(t *testing.T) {
	r := pooledRig(t, server.Scores, 1)
	documents := []string{"one", "two", "three", "four", "five"}
	scores := r.ask("/v1/score", object{"queries": "q", "documents": documents})["data"].([]any)
	by := map[string]float64{}
	for i, s := range scores {
		v := s.(object)["score"].(float64)
		if v <= 0 || v >= 1 {
			t.Fatalf("score %v is no probability", v)
		}
		by[documents[i]] = v
	}
	last := 2.0
	results := r.ask("/v2/rerank", object{"query": "q", "documents": documents, "top_n": 3})["results"].([]any)
	if len(results) != 3 {
		t.Fatalf("%d results; want 3", len(results))
	}
	for _, x := range results {
		x := x.(object)
		text, v := x["document"].(object)["text"].(string), x["relevance_score"].(float64)
		if v > last || by[text] != v || documents[int(x["index"].(float64))] != text {
			t.Fatalf("results %v; scores %v", results, by)
		}
		last = v
	}
	three := pooledRig(t, server.Scores, 3)
	c := three.ask("/classify", object{"input": []string{"x", "y"}})["data"].([]any)[1].(object)
	sum, best := 0.0, 0
	probs := c["probs"].([]any)
	for i, p := range probs {
		sum += p.(float64)
		if p.(float64) > probs[best].(float64) {
			best = i
		}
	}
	if math.Abs(sum-1) > 1e-9 || c["label"] != []string{"NO", "YES", "MAYBE"}[best] || c["num_classes"].(float64) != 3 {
		t.Fatalf("classified %v", c)
	}
	for body, code := range map[string]int{`{}`: 400, `{"queries":["a","b"],"documents":["c"]}`: 400, `{"queries":"a","documents":"b"}`: 400} {
		if got, data := three.post("/score", body); got != code {
			t.Errorf("%s: %d %s; want %d", body, got, data, code)
		}
	}
}
