package fleet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// fleetWithin bounds how long a scrape waits for the slowest worker.
const fleetWithin = 2 * time.Second

// relayed reports whether a family of a worker's is passed on: vLLM's and its server's
// count of requests by status, so that a dashboard made for one engine shows them
// all, and what devices say of themselves.
func relayed(name string) bool {
	return strings.HasPrefix(name, "vllm:") || strings.HasPrefix(name, "http_requests_total") || strings.HasPrefix(name, "roundhouse_device_")
}

// fleetFor is how long what the workers said is shown to whoever asks: however many
// ask, a worker is asked once in that time.
const fleetFor = time.Second

// said is what the workers said last.
type said struct {
	mu   sync.Mutex // held while they are asked
	at   time.Time
	text []byte
}

// Expose writes the metrics of workers that are passed on, as they are or were a
// moment ago.
func (f *Fleet) Expose(w io.Writer, workers []*Worker) {
	s := &f.said
	s.mu.Lock()
	if s.at.IsZero() || time.Since(s.at) > fleetFor {
		var b bytes.Buffer
		f.gather(&b, workers)
		s.text, s.at = b.Bytes(), time.Now()
	}
	text := s.text
	s.mu.Unlock()
	w.Write(text)
}

// gather merges the metrics of workers that are passed on.
func (f *Fleet) gather(w io.Writer, workers []*Worker) {
	ctx, cancel := context.WithTimeout(f.ctx, fleetWithin)
	defer cancel()
	texts := make([][]byte, len(workers))
	var wg sync.WaitGroup
	for i, wk := range workers {
		wg.Go(func() {
			resp, err := wk.ask(ctx, f, "/metrics")
			if err != nil {
				return
			}
			defer resp.Body.Close()
			if b, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20)); err == nil {
				texts[i] = b
			}
		})
	}
	wg.Wait()
	merged := newMerge()
	for i, t := range texts {
		merged.add(t, workers[i].ID)
	}
	merged.write(w)
}

// merge gathers the families of several expositions.
type merge struct {
	order    []string
	families map[string]*family
}

type family struct {
	head    []string // HELP and TYPE
	samples bytes.Buffer
}

func newMerge() *merge { return &merge{families: map[string]*family{}} }

// add takes the families that are passed on of one worker's exposition.
func (m *merge) add(text []byte, worker string) {
	var f *family
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		if rest, ok := strings.CutPrefix(line, "# "); ok {
			f = m.comment(f, rest, line)
			continue
		}
		if f == nil || !relayed(line) {
			continue
		}
		name, labels, _, ok := sample([]byte(line))
		if !ok {
			continue
		}
		value := strings.TrimSpace(line[len(name):])
		if end := strings.LastIndexByte(line, '}'); end >= 0 {
			value = strings.TrimSpace(line[end+1:])
		}
		sep := ""
		if len(labels) > 0 {
			sep = ","
		}
		fmt.Fprintf(&f.samples, "%s{worker=%q%s%s} %s\n", name, worker, sep, bytes.TrimSuffix(labels, []byte(",")), value)
	}
}

// comment takes a HELP or TYPE line and returns the family that it opens.
func (m *merge) comment(f *family, rest, line string) *family {
	parts := strings.SplitN(rest, " ", 3)
	if len(parts) < 2 || parts[0] != "HELP" && parts[0] != "TYPE" {
		return f
	}
	name := parts[1]
	if !relayed(name) {
		return nil
	}
	f = m.families[name]
	if f == nil {
		f = &family{}
		m.families[name] = f
		m.order = append(m.order, name)
	}
	if len(f.head) < 2 && (len(f.head) == 0 || f.head[0][:6] != line[:6]) {
		f.head = append(f.head, line)
	}
	return f
}

func (m *merge) write(w io.Writer) {
	for _, name := range m.order {
		f := m.families[name]
		for _, h := range f.head {
			fmt.Fprintln(w, h)
		}
		w.Write(f.samples.Bytes())
	}
}
