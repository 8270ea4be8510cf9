package recorded

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

//go:embed testdata
var files embed.FS

// By itself, so that a program which wants no more carries no more.
//
//go:embed testdata/0.32.0/metrics.txt
var metrics []byte

// The releases that are recorded: New says "reasoning" of a thought, Old
// "reasoning_content".
const (
	New = "0.32.0"
	Old = "0.11.0"
)

// Model is the name under which the model was served.
const Model = "roundhouse-demo"

// Exchange is one request and its answer.
type Exchange struct {
	Name        string // of the kind; ".stream" or ".whole" behind it
	Path        string
	Request     []byte
	Status      int
	ContentType string
	Answer      []byte
}

// All returns what a release of vLLM answered, by name.
func All(release string) (map[string]Exchange, error) {
	names, err := fs.Glob(files, path.Join("testdata", release, "*.http"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("recorded: nothing of vLLM %s: %w", release, err)
	}
	all := make(map[string]Exchange, len(names))
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		e, err := Parse(text)
		if err != nil {
			return nil, fmt.Errorf("recorded: %s: %w", name, err)
		}
		e.Name = strings.TrimSuffix(path.Base(name), ".http")
		all[e.Name] = e
	}
	return all, nil
}

// Format writes an exchange as a file holds it: a line with the path, the request,
// a line with status and content type, and the answer as it came.
func Format(e Exchange) []byte {
	b := fmt.Appendf(nil, "%s\n%s\n%d %s\n", e.Path, e.Request, e.Status, e.ContentType)
	return append(b, e.Answer...)
}

// Parse reads what Format wrote.
func Parse(text []byte) (e Exchange, err error) {
	parts := bytes.SplitN(text, []byte("\n"), 4)
	if len(parts) != 4 {
		return e, fmt.Errorf("%d lines; a path, a request, a status and an answer are needed", len(parts))
	}
	status, ctype, _ := strings.Cut(string(parts[2]), " ")
	e = Exchange{Path: string(parts[0]), Request: parts[1], ContentType: ctype, Answer: parts[3]}
	e.Status, err = strconv.Atoi(status)
	return e, err
}

// Events returns the data of each event of an answer that streams, [DONE] among them.
func (e Exchange) Events() (data [][]byte) {
	for event := range bytes.SplitSeq(e.Answer, []byte("\n\n")) {
		for line := range bytes.SplitSeq(event, []byte("\n")) {
			if text, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				data = append(data, text)
			}
		}
	}
	return data
}

// Metrics is the exposition of a server of the newest release that has served
// nothing yet: its counters are 0.
func Metrics() []byte { return metrics }
