package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"roundhouse/measure/stat"
)

// File is what Compare reads of a result file: one object for each run in it.
type File struct {
	Path string
	Runs []map[string]any
}

// ReadFile reads a result file of ours or of vLLM: one object, or one a line.
func ReadFile(path string) (File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return File{}, err
	}
	f := File{Path: path}
	in := json.NewDecoder(bytes.NewReader(text))
	for {
		var run map[string]any
		err := in.Decode(&run)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return File{}, fmt.Errorf("%s: not a result file of bench: %w", path, err)
		}
		f.Runs = append(f.Runs, run)
	}
	if len(f.Runs) == 0 {
		return File{}, fmt.Errorf("%s: empty; want a result file of bench", path)
	}
	return f, nil
}

// compared are the figures that two files are set side by side by, and whether more
// is better.
var compared = []struct {
	key  string
	more bool
}{
	{"request_throughput", true}, {"output_throughput", true}, {"request_goodput", true},
	{"mean_ttft_ms", false}, {"median_ttft_ms", false}, {"p99_ttft_ms", false},
	{"mean_tpot_ms", false}, {"median_tpot_ms", false}, {"p99_tpot_ms", false},
	{"mean_itl_ms", false}, {"p99_itl_ms", false},
	{"mean_e2el_ms", false}, {"median_e2el_ms", false}, {"p99_e2el_ms", false},
}

// values returns a figure of each run that has it.
func (f File) values(key string) []float64 {
	var x []float64
	for _, r := range f.Runs {
		if v, ok := r[key].(float64); ok {
			x = append(x, v)
		}
	}
	return x
}

// Compare writes two files' figures side by side. A difference is one if its 95 %
// interval leaves out 0 (Welch's t over the runs of both); one run a side bears
// none, and says so.
func Compare(w io.Writer, a, b File) {
	fmt.Fprintf(w, "A: %s, %d runs\nB: %s, %d runs\n\n", a.Path, len(a.Runs), b.Path, len(b.Runs))
	fmt.Fprintf(w, "%-22s %12s %12s %8s   %s\n", "", "A", "B", "B/A", "difference")
	for _, c := range compared {
		x, y := a.values(c.key), b.values(c.key)
		if len(x) == 0 || len(y) == 0 {
			continue
		}
		ratio := math.NaN()
		if m := stat.Mean(x); m != 0 {
			ratio = stat.Mean(y) / m
		}
		fmt.Fprintf(w, "%-22s %12.2f %12.2f %8.3f   %s\n", c.key, stat.Mean(x), stat.Mean(y), ratio, difference(x, y, c.more))
	}
	if len(a.Runs) < 2 || len(b.Runs) < 2 {
		fmt.Fprintln(w, "\nOne run bears no interval: take at least three a side (--runs 3 --append-result), in turns.")
	}
}

func difference(x, y []float64, more bool) string {
	in, ok := stat.DifferenceInterval(x, y)
	if !ok {
		return "unknown: one run a side"
	}
	if in.Low <= 0 && 0 <= in.High {
		return fmt.Sprintf("no difference shown (%+.2f to %+.2f)", in.Low, in.High)
	}
	word := "B is worse"
	if (in.Low > 0) == more {
		word = "B is better"
	}
	return fmt.Sprintf("%s: %+.2f to %+.2f", word, in.Low, in.High)
}
