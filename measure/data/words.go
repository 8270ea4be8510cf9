package data

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
)

// Counter counts the tokens of texts as a service does.
type Counter struct {
	Base   string // of the service, without a path
	Model  string
	Header http.Header
	HTTP   *http.Client
}

// ErrNoTokenize is returned if the service has no /tokenize.
var ErrNoTokenize = errors.New("the service has no /tokenize")

// Count returns the number of tokens of a text, without special ones.
func (c *Counter) Count(ctx context.Context, text string) (int, error) {
	var answer struct {
		Count int `json:"count"`
	}
	status, err := c.post(ctx, "/tokenize", map[string]any{"model": c.Model, "prompt": text, "add_special_tokens": false}, &answer)
	if status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented {
		return 0, ErrNoTokenize
	}
	return answer.Count, err
}

// prompted returns the tokens of a prompt by the usage of a one-token answer.
func (c *Counter) prompted(ctx context.Context, text string) (int, error) {
	var answer struct {
		Usage struct {
			Prompt int `json:"prompt_tokens"`
		} `json:"usage"`
	}
	body := map[string]any{"model": c.Model, "max_tokens": 1, "messages": []map[string]string{{"role": "user", "content": text}}}
	if _, err := c.post(ctx, "/v1/chat/completions", body, &answer); err != nil {
		return 0, err
	}
	if answer.Usage.Prompt == 0 {
		return 0, errors.New("its answers carry no usage, so that prompts cannot be given a length")
	}
	return answer.Usage.Prompt, nil
}

func (c *Counter) post(ctx context.Context, path string, body, into any) (int, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Base+path, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	req.Header = c.Header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.HTTP.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return res.StatusCode, err
	}
	if res.StatusCode != http.StatusOK {
		return res.StatusCode, fmt.Errorf("%s answers %d: %.300s", path, res.StatusCode, bytes.TrimSpace(answer))
	}
	return res.StatusCode, json.Unmarshal(answer, into)
}

// common are words that most vocabularies know as they are; others are put together
// from their parts, so that texts differ.
var common = strings.Fields(`the of and to in is that for on as with was at by from are this be not or have one new more
can time some her would make like him into has look two way could people my than first water been call who oil now find
long down day did get come made may part over sound take only little work know place year live me back give most very after
thing our just name good sentence man think say great where help through much before line right too mean old any same tell boy
follow came want show also around form three small set put end does another well large must big even such because turn here why
ask went men read need land different home us move try kind hand picture again change off play spell air away animal house`)

// Words are words with their tokens, each counted with the blank before it.
type Words struct {
	text   []string
	tokens []int
	one    []int // the words of one token
}

// CountWords counts the tokens of some hundred words at a service.
func CountWords(ctx context.Context, c *Counter) (*Words, error) {
	w := &Words{}
	base, err := c.Count(ctx, "x")
	if errors.Is(err, ErrNoTokenize) {
		return estimated(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	for _, word := range common {
		n, err := c.Count(ctx, "x "+word)
		if err != nil {
			return nil, err
		}
		w.add(word, n-base)
	}
	return w, w.check()
}

// estimated counts all words at once by usage, and gives each the mean: a text's
// length is then right on the average.
func estimated(ctx context.Context, c *Counter) (*Words, error) {
	few, err := c.prompted(ctx, "x")
	if err != nil {
		return nil, err
	}
	many, err := c.prompted(ctx, "x "+strings.Join(common, " "))
	if err != nil {
		return nil, err
	}
	w := &Words{}
	each := max(1, (many-few+len(common)/2)/len(common))
	for _, word := range common {
		w.add(word, each)
	}
	return w, w.check()
}

func (w *Words) add(word string, tokens int) {
	if tokens < 1 {
		return // merged with its neighbour: of no use as a measure
	}
	if tokens == 1 {
		w.one = append(w.one, len(w.text))
	}
	w.text, w.tokens = append(w.text, word), append(w.tokens, tokens)
}

func (w *Words) check() error {
	if len(w.text) < 20 {
		return errors.New("the service's /tokenize gives most words no token of their own; prompts of a given length cannot be made")
	}
	return nil
}

// Text returns words of a number of tokens, and the number that they have: if no
// word is one token, it may be some less.
func (w *Words) Text(tokens int, rng *rand.Rand) (string, int) {
	var b strings.Builder
	have := 0
	for have < tokens {
		i := rng.IntN(len(w.text))
		if have+w.tokens[i] > tokens {
			if len(w.one) == 0 {
				break
			}
			i = w.one[rng.IntN(len(w.one))]
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.text[i])
		have += w.tokens[i]
	}
	return b.String(), have
}
