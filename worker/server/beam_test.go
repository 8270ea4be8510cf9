package server_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"slices"
	"testing"

	"roundhouse/worker"
	"roundhouse/worker/server"
)

// found is an answer of a beam search.
type found struct {
	tokens []int32
	sum    float64
	ended  bool
}

// plain searches as vLLM is written: to the last token that is allowed, and over
// whole lists.
func (r *rig) plain(prompt []int32, width, most int, penalty float64, eos int32, keep bool) []found {
	r.t.Helper()
	var ended []found
	going := []found{{}}
	for range most {
		var on []found
		for _, b := range going {
			st, err := r.engine.Submit(worker.Request{
				Tokens: slices.Concat(prompt, b.tokens),
				Params: worker.Params{N: 1, MaxTokens: 1, TopP: 1, Repetition: 1, IgnoreEOS: true, Logprobs: 2 * width, PromptLogprobs: -1},
			})
			if err != nil {
				r.t.Fatal(err)
			}
			events, err := st.Next(context.Background())
			st.Close()
			if err != nil || len(events) != 1 {
				r.t.Fatalf("%v, %v", events, err)
			}
			c := &events[0].Chosen
			for _, t := range c.Top {
				next := found{append(slices.Clone(b.tokens), t.Token), b.sum + float64(t.Logit) - float64(c.LogSumExp), t.Token == eos}
				if !next.ended {
					on = append(on, next)
					continue
				}
				if !keep {
					next.tokens = b.tokens
				}
				ended = append(ended, next)
			}
		}
		slices.SortStableFunc(on, func(a, b found) int { return cmp.Compare(b.sum, a.sum) })
		going = on[:width]
	}
	score := func(b found) float64 {
		length := len(prompt) + len(b.tokens)
		if b.ended && keep {
			length--
		}
		return b.sum / math.Pow(float64(length), penalty)
	}
	all := append(ended, going...)
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(score(b), score(a)) })
	return all[:width]
}

// TestBeams holds answers of a beam search, which ends as soon as no better one
// can come, to those of a search that goes on to the end.
func TestBeams(t *testing.T) {
	const most = 7
	free := newRig(t, nil)
	stopped := 0
	for seed := range int32(4) {
		prompt := []int32{40 + seed, 300 + seed, 7}
		// A token that the answers have ends them from here on.
		eos := free.plain(prompt, 3, most, 1, -1, false)[1].tokens[3]
		r := newRig(t, func(s *server.Config, w *worker.Config) {
			s.EOSToken, w.EOS = s.Tokenizer.Token(eos), []int32{eos}
			s.MaxLogprobs = 8
		})
		for n := 1; n <= 4; n++ {
			for _, penalty := range []float64{-1, 0, 1, 2.5} {
				for _, keep := range []bool{false, true} {
					name := fmt.Sprintf("prompt %d, %d beams, penalty %v, %v", seed, n, penalty, keep)
					var a struct {
						Choices []struct {
							Index    int
							Finish   string  `json:"finish_reason"`
							Stop     *int32  `json:"stop_reason"`
							TokenIDs []int32 `json:"token_ids"`
							Logprobs struct {
								Values []float64 `json:"token_logprobs"`
							}
						}
						Usage struct {
							Completion int `json:"completion_tokens"`
						}
					}
					status, data := r.post(texts, object{
						"model": "m", "prompt": prompt, "use_beam_search": true, "n": n, "max_tokens": most, "length_penalty": penalty, "temperature": 0,
						"include_stop_str_in_output": keep, "return_token_ids": true, "logprobs": 0,
					})
					if err := json.Unmarshal(data, &a); err != nil || status != http.StatusOK {
						t.Fatalf("%s: %d %s", name, status, data)
					}
					want := r.plain(prompt, n, most, penalty, eos, keep)
					if len(a.Choices) != n {
						t.Fatalf("%s: %d choices", name, len(a.Choices))
					}
					tokens := 0
					for i, c := range a.Choices {
						tokens += len(want[i].tokens)
						if c.Index != i || !slices.Equal(c.TokenIDs, want[i].tokens) || len(c.Logprobs.Values) != len(want[i].tokens) {
							t.Errorf("%s: answer %d is %v with %d logprobs; want %v", name, i, c.TokenIDs, len(c.Logprobs.Values), want[i].tokens)
						}
						switch {
						case !want[i].ended && c.Finish == "length" && c.Stop == nil:
						case want[i].ended && c.Finish == "stop" && c.Stop != nil && *c.Stop == eos:
							stopped++
						default:
							t.Errorf("%s: answer %d ended by %s %v", name, i, c.Finish, c.Stop)
						}
					}
					if a.Usage.Completion != tokens {
						t.Errorf("%s: %d tokens counted; want %d", name, a.Usage.Completion, tokens)
					}
				}
			}
		}
	}
	if stopped < 20 {
		t.Errorf("%d answers were ended by a token", stopped)
	}
}

// TestBeamsOfSeveralPrompts holds the order of answers to several prompts, and
// that a worker which shuts down ends a search that is under way.
func TestBeamsOfSeveralPrompts(t *testing.T) {
	r := newRig(t, nil)
	prompts := [][]int32{{40, 300, 7}, {41, 8}, {9, 10, 11, 12}}
	release := r.model.Hold()
	defer release()
	type answer struct {
		status int
		data   []byte
	}
	answered := make(chan answer, 1)
	go func() {
		status, data := r.post(texts, object{"model": "m", "prompt": prompts, "use_beam_search": true, "n": 2, "max_tokens": 5, "temperature": 0, "return_token_ids": true})
		answered <- answer{status, data}
	}()
	for len(r.model.Steps()) == 0 && len(answered) == 0 {
		runtime.Gosched()
	}
	r.engine.Drain()
	release()
	if !r.engine.WaitIdle(context.Background()) {
		t.Fatal("not idle")
	}
	a := <-answered
	var said struct {
		Choices []struct {
			TokenIDs []int32 `json:"token_ids"`
		}
	}
	if err := json.Unmarshal(a.data, &said); err != nil || a.status != http.StatusOK || len(said.Choices) != 6 {
		t.Fatalf("%d %s", a.status, a.data)
	}
	if status, data := r.post(texts, object{"model": "m", "prompt": prompts[0], "use_beam_search": true, "max_tokens": 5}); status != http.StatusServiceUnavailable {
		t.Errorf("a search that came later: %d %s", status, data)
	}
	fresh := newRig(t, nil)
	for i, p := range prompts {
		for k, want := range fresh.plain(p, 2, 5, 1, -1, false) {
			if got := said.Choices[2*i+k].TokenIDs; !slices.Equal(got, want.tokens) {
				t.Errorf("prompt %d, answer %d: %v; want %v", i, k, got, want.tokens)
			}
		}
	}
}
