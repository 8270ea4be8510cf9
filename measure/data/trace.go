package data

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"roundhouse/measure/bench"
)

// TraceRow is one request of recorded traffic.
type TraceRow struct {
	At            time.Duration // since the first
	Input, Output int
	Blocks        []uint64 // ids of the prompt's blocks: equal ids are equal text
}

// ReadTrace reads recorded traffic: a .csv file with the columns TIMESTAMP,
// ContextTokens and GeneratedTokens (Azure's), or JSON lines with timestamp,
// input_length, output_length and perhaps hash_ids (Mooncake's). A JSON timestamp
// is multiplied by unit to give its time.
func ReadTrace(path string, unit time.Duration) ([]TraceRow, error) {
	if strings.HasSuffix(path, ".csv") {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return readCSV(path, csv.NewReader(file))
	}
	var rows []TraceRow
	first := 0.0
	err := lines(path, func(text []byte) error {
		var l struct {
			At     *float64 `json:"timestamp"`
			Input  int      `json:"input_length"`
			Output int      `json:"output_length"`
			Blocks []uint64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(text, &l); err != nil {
			return err
		}
		if l.At == nil || l.Input < 1 {
			return fmt.Errorf("want timestamp, input_length and output_length")
		}
		if len(rows) == 0 {
			first = *l.At
		}
		rows = append(rows, TraceRow{At: time.Duration((*l.At - first) * float64(unit)), Input: l.Input, Output: max(1, l.Output), Blocks: l.Blocks})
		return nil
	})
	return rows, err
}

func readCSV(path string, in *csv.Reader) ([]TraceRow, error) {
	head, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	column := map[string]int{}
	for i, name := range head {
		column[name] = i
	}
	at, hasAt := column["TIMESTAMP"]
	input, hasInput := column["ContextTokens"]
	output, hasOutput := column["GeneratedTokens"]
	if !hasAt || !hasInput || !hasOutput {
		return nil, fmt.Errorf("%s:1: want the columns TIMESTAMP, ContextTokens and GeneratedTokens", path)
	}
	var rows []TraceRow
	var first time.Time
	for n := 2; ; n++ {
		row, err := in.Read()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		when, err := time.Parse("2006-01-02 15:04:05", row[at])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		prompt, err1 := strconv.Atoi(row[input])
		answer, err2 := strconv.Atoi(row[output])
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("%s:%d: %q and %q: want two numbers of tokens", path, n, row[input], row[output])
		}
		if len(rows) == 0 {
			first = when
		}
		rows = append(rows, TraceRow{At: when.Sub(first), Input: max(1, prompt), Output: max(1, answer)})
	}
}

// Replay makes requests of recorded traffic: speed divides its times, block is how
// many tokens an id of a block stands for, and no request is longer than longest
// (0: any length). Equal ids give equal text; different ones differ from their first
// token on.
func Replay(rows []TraceRow, speed float64, block, longest int, w *Words, rng *rand.Rand) []bench.Request {
	var all []bench.Request
	for _, row := range rows {
		input, output := row.Input, row.Output
		if longest > 0 {
			input = min(input, max(1, longest-output))
		}
		var text strings.Builder
		have := 0
		for i := 0; i < len(row.Blocks) && (i+1)*block <= input; i++ {
			part, n := w.Text(block, rand.New(rand.NewPCG(row.Blocks[i], 1)))
			fmt.Fprintf(&text, "%s %s ", mark(row.Blocks[i]), part)
			have += n
		}
		rest, n := w.Text(max(0, input-have), rng)
		text.WriteString(rest)
		all = append(all, bench.Request{Prompt: strings.TrimSpace(text.String()), PromptTokens: have + n, Output: output,
			At: time.Duration(float64(row.At) / speed)})
	}
	return all
}

// mark is a word that begins a block and tells it from every other one.
func mark(id uint64) string {
	h := fnv.New32a()
	fmt.Fprint(h, id)
	return strconv.FormatUint(uint64(h.Sum32()), 36)
}
