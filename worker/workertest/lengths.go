package workertest

import (
	"encoding/csv"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
)

// Length is how long a request's prompt and answer are, in tokens.
type Length struct{ Prompt, Answer int }

// quantiles are the lengths that such a share of the requests of the Azure LLM
// inference trace 2023 (code completion) does not exceed. Prompts and answers
// are independent of each other there: their correlation is 0.001.
var quantiles = []quantile{
	{0, 3, 6}, {.01, 17, 6}, {.02, 35, 6}, {.05, 75, 6}, {.1, 147, 7}, {.15, 232, 7}, {.2, 386, 8}, {.25, 578, 9}, {.3, 770, 9},
	{.4, 1075, 11}, {.5, 1469, 13}, {.6, 1909, 16}, {.7, 2433, 20}, {.75, 2745, 24}, {.8, 3192, 29}, {.85, 3919, 39}, {.9, 5186, 55},
	{.95, 7302, 90}, {.98, 7436, 172}, {.99, 7436, 252}, {1, 7437, 1899},
}

type quantile struct {
	share          float64
	prompt, answer int
}

// Lengths draws lengths of the trace's distribution.
func Lengths(rng *rand.Rand) Length {
	at := func(value func(i int) int) int {
		u := rng.Float64()
		i := slices.IndexFunc(quantiles, func(q quantile) bool { return q.share > u })
		a, b := quantiles[i-1], quantiles[i]
		return value(i-1) + int(float64(value(i)-value(i-1))*(u-a.share)/(b.share-a.share))
	}
	return Length{at(func(i int) int { return quantiles[i].prompt }), at(func(i int) int { return quantiles[i].answer })}
}

// ReadLengths reads a trace: a table with the columns ContextTokens and
// GeneratedTokens.
func ReadLengths(path string) ([]Length, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows := csv.NewReader(f)
	head, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	prompt, answer := slices.Index(head, "ContextTokens"), slices.Index(head, "GeneratedTokens")
	if prompt < 0 || answer < 0 {
		return nil, fmt.Errorf("%s: the first line is %q; want the columns ContextTokens and GeneratedTokens", path, head)
	}
	var all []Length
	for {
		row, err := rows.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		p, pErr := strconv.Atoi(row[prompt])
		a, aErr := strconv.Atoi(row[answer])
		if pErr != nil || aErr != nil || p < 1 || a < 1 {
			return nil, fmt.Errorf("%s: %q is no length", path, row)
		}
		all = append(all, Length{p, a})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s holds no requests", path)
	}
	return all, nil
}
