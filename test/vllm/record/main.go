// Record asks a vLLM server requests of every kind and writes what it answers to a
// folder: go run ./test/vllm/record -url http://127.0.0.1:8000 -out FOLDER
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"roundhouse/balancer/sim/recorded"
	"roundhouse/test/vllm/kinds"
)

func main() {
	url := flag.String("url", "http://127.0.0.1:8000", "the server")
	out := flag.String("out", "", "the folder to write to")
	tokens := flag.Int("tokens", 24, "of each answer, at most")
	thinks := flag.Bool("thinks", false, "the server serves the thinker, and parts thoughts from answers")
	thinker := flag.String("thinker", "", "only write the thinker, that is a model with marks of thoughts, to this folder")
	only := flag.String("only", "", "the kinds to ask for, as a regular expression")
	flag.Parse()
	wanted, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintf(os.Stderr, "record: -only: %v\n", err)
		os.Exit(2)
	}
	if *thinker != "" {
		if err := kinds.Thinker("worker/demo/model", *thinker); err != nil {
			fmt.Fprintf(os.Stderr, "record: %v\n", err)
			os.Exit(1)
		}
		return
	}
	list := kinds.Streams(5, *tokens)
	if *thinks {
		list = kinds.Reasoning(96)
	}
	for _, k := range list {
		if !wanted.MatchString(k.Name) {
			continue
		}
		for _, stream := range []bool{true, false} {
			if err := one(*url, *out, k, stream); err != nil {
				fmt.Fprintf(os.Stderr, "record: %s: %v\n", k.Name, err)
				os.Exit(1)
			}
		}
	}
}

// one records one request.
func one(url, out string, k kinds.Kind, stream bool) error {
	form := "whole"
	if stream {
		form = "stream"
	}
	e := recorded.Exchange{Name: k.Name + "." + form, Path: k.Path, Request: k.Body(stream)}
	res, err := http.Post(url+k.Path, "application/json", bytes.NewReader(e.Request))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if e.Answer, err = io.ReadAll(res.Body); err != nil {
		return err
	}
	e.Status, e.ContentType = res.StatusCode, res.Header.Get("Content-Type")
	fmt.Printf("%-34s %d %s, %d bytes\n", e.Name, e.Status, strings.TrimSpace(e.ContentType), len(e.Answer))
	return os.WriteFile(filepath.Join(out, e.Name+".http"), recorded.Format(e), 0o644)
}
