package data

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

	"roundhouse/measure/bench"
)

// Lengths are those of random prompts.
type Lengths struct {
	Input, Output int
	Prefix        int     // tokens that all prompts begin with
	Range         float64 // lengths are drawn evenly from ±Range of the length
}

// Random returns n prompts of random words.
func Random(n int, l Lengths, w *Words, rng *rand.Rand) ([]bench.Request, error) {
	if l.Range < 0 || l.Range >= 1 {
		return nil, fmt.Errorf("--random-range-ratio is %g; want 0 or more and less than 1", l.Range)
	}
	prefix, prefixTokens := w.Text(l.Prefix, rng)
	var all []bench.Request
	for range n {
		text, tokens := w.Text(around(l.Input, l.Range, rng), rng)
		if prefix != "" {
			text = prefix + " " + text
		}
		all = append(all, bench.Request{Prompt: text, PromptTokens: prefixTokens + tokens, Output: around(l.Output, l.Range, rng)})
	}
	return all, nil
}

func around(n int, share float64, rng *rand.Rand) int {
	low, high := int(float64(n)*(1-share)), int(float64(n)*(1+share))
	return max(1, low+rng.IntN(high-low+1))
}

// Repetition is n prompts that share prefixes.
type Repetition struct{ Prefix, Suffix, Prefixes, Output int }

// PrefixRepetition returns n prompts, in random order, which share their prefixes.
func PrefixRepetition(n int, r Repetition, w *Words, rng *rand.Rand) ([]bench.Request, error) {
	if r.Prefixes < 1 || n < r.Prefixes {
		return nil, fmt.Errorf("--prefix-repetition-num-prefixes is %d and --num-prompts %d; want at least one prompt a prefix", r.Prefixes, n)
	}
	var all []bench.Request
	for range r.Prefixes {
		prefix, have := w.Text(r.Prefix, rng)
		for range n / r.Prefixes {
			suffix, more := w.Text(r.Suffix, rng)
			all = append(all, bench.Request{Prompt: prefix + " " + suffix, PromptTokens: have + more, Output: r.Output})
		}
	}
	rng.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	return all, nil
}

// Custom reads JSON lines with "prompt" and perhaps "output_tokens".
func Custom(path string, output int) ([]bench.Request, error) {
	var all []bench.Request
	err := lines(path, func(text []byte) error {
		var l struct {
			Prompt *string `json:"prompt"`
			Output int     `json:"output_tokens"`
		}
		if err := json.Unmarshal(text, &l); err != nil {
			return err
		}
		if l.Prompt == nil {
			return fmt.Errorf(`there is no "prompt"`)
		}
		q := bench.Request{Prompt: *l.Prompt, Output: output}
		if output == -1 || output == 0 {
			if l.Output < 1 {
				return fmt.Errorf(`there is no "output_tokens", and --custom-output-len is %d`, output)
			}
			q.Output = l.Output
		}
		all = append(all, q)
		return nil
	})
	return all, err
}

// ShareGPT reads a file of ShareGPT's shape: the first turn asks, the second gives
// the answer's length by its words if output is 0.
func ShareGPT(path string, output int) ([]bench.Request, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var talks []struct {
		Conversations []struct {
			Value string `json:"value"`
		} `json:"conversations"`
	}
	if err := json.NewDecoder(file).Decode(&talks); err != nil {
		return nil, fmt.Errorf("%s: want a list of objects with conversations: %w", path, err)
	}
	var all []bench.Request
	for _, t := range talks {
		if len(t.Conversations) < 2 {
			continue
		}
		q := bench.Request{Prompt: t.Conversations[0].Value, Output: output}
		if output == 0 {
			q.Output = len(strings.Fields(t.Conversations[1].Value)) * 4 / 3
		}
		if prompt := len(q.Prompt) / 4; q.Output < 4 || prompt < 4 || prompt > 1024 || prompt+q.Output > 2048 {
			continue // as vLLM: neither the shortest nor the longest
		}
		all = append(all, q)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no conversation of two turns and a fitting length", path)
	}
	return all, nil
}

// Checked returns n questions to the demonstration model whose answers can be
// judged to the letter, so that an answer of another stream, or of none, is found.
func Checked(n int, rng *rand.Rand) []bench.Request {
	var all []bench.Request
	for range n {
		from := 1 + rng.IntN(60)
		to := from + 10 + rng.IntN(30)
		var want strings.Builder
		for i := from; i <= to; i++ {
			if i > from {
				want.WriteString(" ")
			}
			fmt.Fprint(&want, i)
		}
		all = append(all, bench.Request{Prompt: fmt.Sprintf("Count from %d to %d by 1.", from, to), Output: 20 + 8*(to-from), Want: want.String()})
	}
	return all
}

// Take returns n of the requests: the first ones, or, if there are fewer and more
// are allowed, all again in random order until there are n.
func Take(all []bench.Request, n int, oversample bool, rng *rand.Rand) []bench.Request {
	if len(all) >= n || !oversample || len(all) == 0 {
		return all[:min(n, len(all))]
	}
	taken := append([]bench.Request(nil), all...)
	for len(taken) < n {
		taken = append(taken, all[rng.IntN(len(all))])
	}
	return taken
}

// lines calls each for every line of a file that is not blank; its error gets the
// file and the line's number.
func lines(path string, each func([]byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	in := bufio.NewScanner(file)
	in.Buffer(nil, 64<<20)
	for n := 1; in.Scan(); n++ {
		if len(strings.TrimSpace(in.Text())) == 0 {
			continue
		}
		if err := each(in.Bytes()); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	return in.Err()
}
