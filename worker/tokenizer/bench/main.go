// Command bench compares this tokenizer's speed with the tokenizers library of
// Hugging Face on one thread, over the same text and the same tokenizers.
//
//	go run ./worker/tokenizer/bench -python python3
//
// The Python named needs the package tokenizers. Without one, only our own
// speed is printed. The text is made by the program: English-like words, code,
// and Chinese, 2 MB each, or 200 kB with -short. "cold" is text whose words
// were never seen, the worst for both sides' caches.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"roundhouse/worker/tokenizer"
)

func main() {
	python := flag.String("python", "python3", "a Python that has the package tokenizers")
	short := flag.Bool("short", false, "less text; ends within a minute")
	data := flag.String("data", "worker/tokenizer/testdata", "folder of the packed tokenizers")
	flag.Parse()
	if err := run(*python, *data, *short); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(python, data string, short bool) error {
	size := 2_000_000
	if short {
		size = 200_000
	}
	dir, err := os.MkdirTemp("", "bench-tokenizers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	texts := makeTexts(size)
	fmt.Printf("%-10s %-8s %12s %12s %8s\n", "kind", "text", "ours MB/s", "theirs MB/s", "ratio")
	for _, kind := range []string{"gpt2", "llama3", "qwen2", "gpt4o", "deepseek", "llama2", "gemma", "xlmr", "bert"} {
		path, tok, err := unpack(dir, data, kind)
		if err != nil {
			return err
		}
		for _, name := range []string{"english", "cold", "code", "chinese"} {
			text := texts[name]
			ours := speed(tok, text)
			theirs, err := theirSpeed(python, dir, path, text)
			if err != nil {
				fmt.Printf("%-10s %-8s %12.1f %12s\n", kind, name, ours, "absent")
				continue
			}
			fmt.Printf("%-10s %-8s %12.1f %12.1f %8.1f\n", kind, name, ours, theirs, ours/theirs)
		}
	}
	return nil
}

// unpack writes a packed tokenizer.json to dir and loads it.
func unpack(dir, data, kind string) (string, *tokenizer.Tokenizer, error) {
	f, err := os.Open(filepath.Join(data, kind+".json.gz"))
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return "", nil, err
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		return "", nil, err
	}
	path := filepath.Join(dir, kind+".json")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		return "", nil, err
	}
	tok, err := tokenizer.Load(raw)
	return path, tok, err
}

// makeTexts returns chunks of about 2 kB, the size of a message.
func makeTexts(size int) map[string][]string {
	r := rand.New(rand.NewSource(1))
	word := func() string {
		n := 1 + r.Intn(9)
		b := make([]byte, n)
		for i := range b {
			b[i] = "etaoinshrdlucmfwypvbgkqjxz"[int(r.ExpFloat64()*5)%26]
		}
		return string(b)
	}
	vocabulary := make([]string, 20_000)
	for i := range vocabulary {
		vocabulary[i] = word()
	}
	common := func() string { return vocabulary[int(r.ExpFloat64()*1500)%len(vocabulary)] }
	chunks := func(piece func() string) []string {
		var out []string
		for total := 0; total < size; {
			var b strings.Builder
			for b.Len() < 2000 {
				b.WriteString(piece())
			}
			out = append(out, b.String())
			total += b.Len()
		}
		return out
	}
	return map[string][]string{
		"english": chunks(func() string { return common() + []string{" ", " ", " ", " ", ", ", ". ", "\n"}[r.Intn(7)] }),
		"cold":    chunks(func() string { return word() + word() + " " }),
		"code": chunks(func() string {
			return "    " + common() + "_" + common() + "(" + common() + ", " + fmt.Sprint(r.Intn(5000)) + ");\n"
		}),
		"chinese": chunks(func() string {
			return string(rune(0x4E00+int(r.ExpFloat64()*400)%20000)) + []string{"", "", "", "，", "。\n"}[r.Intn(5)]
		}),
	}
}

// speed returns MB/s, the best of three.
func speed(tok *tokenizer.Tokenizer, text []string) float64 {
	best, total := time.Duration(1<<62), 0
	for range 3 {
		begin := time.Now()
		total = 0
		for _, s := range text {
			tok.Encode(s, tokenizer.EncodeOptions{ParseSpecial: true})
			total += len(s)
		}
		best = min(best, time.Since(begin))
	}
	return float64(total) / 1e6 / best.Seconds()
}

const program = `
import json, sys, time
from tokenizers import Tokenizer
t = Tokenizer.from_file(sys.argv[1])
text = json.load(open(sys.argv[2]))
best = 1e9
for _ in range(3):
    begin = time.perf_counter()
    for s in text:
        t.encode(s, add_special_tokens=False)
    best = min(best, time.perf_counter() - begin)
print(sum(len(s.encode()) for s in text) / 1e6 / best)
`

func theirSpeed(python, dir, path string, text []string) (float64, error) {
	raw, err := json.Marshal(text)
	if err != nil {
		return 0, err
	}
	file := filepath.Join(dir, "text.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return 0, err
	}
	cmd := exec.Command(python, "-c", program, path, file)
	cmd.Env = append(os.Environ(), "TOKENIZERS_PARALLELISM=false", "RAYON_NUM_THREADS=1")
	out, err := cmd.Output()
	if err != nil {
		return 0, err
	}
	var mbs float64
	_, err = fmt.Sscan(string(bytes.TrimSpace(out)), &mbs)
	return mbs, err
}
