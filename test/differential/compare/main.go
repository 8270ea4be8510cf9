// Compare asks a real vLLM and our worker the same and lists how the answers
// differ; -record writes down what vLLM answered, for the tests without it.
//
//	go run ./test/differential/compare -vllm http://127.0.0.1:8000 -worker http://127.0.0.1:8001
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"

	"roundhouse/test/differential"
)

func main() {
	vllm := flag.String("vllm", "", "the vLLM server; left out: what was recorded of it")
	worker := flag.String("worker", "", "our worker; left out: vLLM is only recorded")
	requests := flag.String("requests", "test/differential/testdata/requests.jsonl", "the requests")
	recorded := flag.String("recorded", "test/differential/testdata/answers.jsonl", "what vLLM answered when it was recorded")
	record := flag.Bool("record", false, "write what vLLM answers to -recorded")
	table := flag.String("table", "docs/api.md", "the page with the table of wanted differences")
	only := flag.String("only", "", "requests whose name begins so")
	setup := flag.String("setup", "", "the setup whose rows of the table hold besides, as 2:")
	flag.Parse()
	if err := run(*vllm, *worker, *requests, *recorded, *table, *setup, *only, *record); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(vllm, worker, requests, recorded, page, setup, only string, record bool) error {
	list, err := differential.Lines[differential.Request](requests)
	if err != nil {
		return err
	}
	table, err := differential.Table(page)
	if err != nil {
		return err
	}
	theirs, err := answers(list, vllm, recorded, only)
	if err != nil {
		return err
	}
	if record {
		return write(recorded, list, theirs)
	}
	asked, equal, wanted, open := 0, 0, 0, 0
	for i := range list {
		want := theirs[list[i].Name]
		if want == nil {
			continue
		}
		got, err := list[i].Ask(worker)
		if err != nil {
			return err
		}
		asked++
		differences := differential.Compare(want, got)
		unknown := false
		for _, d := range differences {
			if !differential.Wanted(table, setup, d) {
				unknown = true
				fmt.Println(d)
			}
		}
		switch {
		case unknown:
			open++
		case len(differences) > 0:
			wanted++
		default:
			equal++
		}
	}
	fmt.Printf("%d requests: %d equal, %d with differences of the table only, %d others\n", asked, equal, wanted, open)
	if open > 0 {
		return fmt.Errorf("%d answers differ from vLLM's in ways that %s does not have", open, page)
	}
	return nil
}

// answers asks vLLM, or reads what it answered.
func answers(list []differential.Request, vllm, recorded, only string) (map[string]*differential.Answer, error) {
	out := map[string]*differential.Answer{}
	if vllm == "" {
		read, err := differential.Lines[differential.Answer](recorded)
		for i := range read {
			if strings.HasPrefix(read[i].Name, only) {
				out[read[i].Name] = &read[i]
			}
		}
		return out, err
	}
	for i := range list {
		if !strings.HasPrefix(list[i].Name, only) {
			continue
		}
		a, err := list[i].Ask(vllm)
		if err != nil {
			return nil, err
		}
		out[a.Name] = a
	}
	return out, nil
}

func write(file string, list []differential.Request, answers map[string]*differential.Answer) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	e := json.NewEncoder(f)
	e.SetEscapeHTML(false)
	for i := range list {
		if err := e.Encode(answers[list[i].Name]); err != nil {
			return err
		}
	}
	return f.Close()
}
