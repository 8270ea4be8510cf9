//go:build vllm

package vllm

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"roundhouse/test/system"
	"roundhouse/test/vllm/kinds"
	"roundhouse/test/vllm/said"
)

var (
	only  = flag.String("faults", "", "the faults, as a regular expression; all of them")
	asked = flag.String("kinds", "", "the kinds, as a regular expression: a server of another release does not serve all of them")
)

// A fault is what happens to one of two servers while both have streams.
type fault struct {
	name   string
	strike func(m *matrix, victim system.Worker)
	after  func(m *matrix, victim system.Worker) // once all streams have ended
}

var faults = []fault{
	{"killed", signal(syscall.SIGKILL), nil},
	{"terminated", signal(syscall.SIGTERM), nil},
	{"stopped", signal(syscall.SIGSTOP), signal(syscall.SIGKILL)},
	{"drained", verb("drain"), verb("undrain")},
	{"rotated", verb("rotate"), nil},
}

func verb(v string) func(*matrix, system.Worker) {
	return func(m *matrix, w system.Worker) {
		if status := m.Post("/api/workers/"+w.ID+"/"+v, "{}"); status != http.StatusOK {
			m.t.Errorf("%s %s: status %d", v, w.ID, status)
		}
	}
}

// signal sends a signal to a server and all its helpers.
func signal(sig syscall.Signal) func(*matrix, system.Worker) {
	return func(m *matrix, w system.Worker) {
		to := -w.Place.PID
		if sig == syscall.SIGTERM {
			to = w.Place.PID // as whoever stops a server does
		}
		if err := syscall.Kill(to, sig); err != nil {
			m.t.Errorf("signal %v to %s: %v", sig, w.ID, err)
		}
	}
}

// copies is how many streams of each kind there are at a time: one at each server.
const copies = 2

// stream is one stream under way.
type stream struct {
	kind kinds.Kind
	id   string
	at   string // its worker when the fault came
	said *said.Said
}

// matrix is a system that is struck under streams of some kinds.
type matrix struct {
	*system.System
	t    *testing.T
	list []kinds.Kind
}

// wave is a stream of every kind, twice.
type wave struct {
	streams []*stream
	all     sync.WaitGroup
	began   chan struct{} // a value for each stream that has said something, or ended
}

// launch begins streams of all kinds one after the other, so that the copies of one go
// to different servers.
func (m *matrix) launch(tag string) *wave {
	w := &wave{began: make(chan struct{}, copies*len(m.list))}
	for _, k := range m.list {
		for i := range copies {
			st := &stream{kind: k, id: tag + "-" + k.Name + "-" + strconv.Itoa(i)}
			w.streams = append(w.streams, st)
			sent := make(chan struct{})
			w.all.Go(func() { st.run(m.Door, w.began, sent) })
			<-sent
		}
	}
	return w
}

// run carries one stream to its end.
func (st *stream) run(door string, began, sent chan struct{}) {
	begun := sync.OnceFunc(func() { began <- struct{}{} })
	defer begun()
	wrote := sync.OnceFunc(func() { close(sent) })
	defer wrote()
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { wrote() }})
	req, err := http.NewRequestWithContext(ctx, "POST", door+st.kind.Path, bytes.NewReader(st.kind.Body(true)))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", st.id)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		st.said = &said.Said{Errors: []string{err.Error()}}
		return
	}
	defer res.Body.Close()
	st.said = said.Read(st.kind.Path, res.StatusCode, res.Body, func(s *said.Said) {
		if s.Events == 2 {
			begun()
		}
	})
}

// where is the worker of every request that the door has in flight.
func (m *matrix) where() map[string]string {
	var list []struct{ ID, Worker string }
	m.Get("/api/requests", &list)
	at := map[string]string{}
	for _, r := range list {
		at[r.ID] = r.Worker
	}
	return at
}

// cell is one cell of the table: of a kind's streams at the struck server, those that
// came whole, and those of all that the server ended early and called complete.
type cell struct{ hit, whole, early int }

// TestStreams strikes one of two servers under streams of every kind. Each comes
// whole and equal to one that nobody disturbed.
func TestStreams(t *testing.T) {
	model, err := filepath.Abs("../../worker/demo/model")
	if err != nil {
		t.Fatal(err)
	}
	m := &matrix{start(t, model, ""), t, kinds.Streams(5, 300)}
	m.run()
}

// TestThoughts is TestStreams of a model that thinks before it answers.
func TestThoughts(t *testing.T) {
	dir := t.TempDir()
	if err := kinds.Thinker("../../worker/demo/model", dir); err != nil {
		t.Fatal(err)
	}
	m := &matrix{start(t, dir, `reasoning_end = "</think>"`, "--reasoning-parser", "deepseek_r1"), t, kinds.Reasoning(150)}
	m.run()
}

// run strikes by every fault, and prints kinds × faults.
func (m *matrix) run() {
	serves := regexp.MustCompile(*asked)
	m.list = slices.DeleteFunc(m.list, func(k kinds.Kind) bool { return !serves.MatchString(k.Name) })
	undisturbed := map[string][]*said.Said{}
	for round := range 2 {
		w := m.launch(fmt.Sprint("undisturbed-", round))
		w.all.Wait()
		for _, st := range w.streams {
			if err := st.said.Whole(); err != nil {
				m.t.Errorf("%s: %v", st.id, err)
			}
			undisturbed[st.kind.Name] = append(undisturbed[st.kind.Name], st.said)
		}
	}
	wanted := regexp.MustCompile(*only)
	table, struck := map[string][]cell{}, []string{}
	for i, f := range faults {
		if !wanted.MatchString(f.name) {
			continue
		}
		struck = append(struck, f.name)
		m.Ready()
		w, victim := m.strike(f, i%2)
		for _, k := range m.list {
			table[k.Name] = append(table[k.Name], m.judge(w, k, victim, f, undisturbed[k.Name]))
		}
		m.Until("the struck server is another", func() bool { return f.name == "drained" || m.replaced(victim) })
		m.t.Log(render(m.list, table, struck)) // so far: who waits for half an hour wants to see it
	}
}

// strike carries a wave through a fault.
func (m *matrix) strike(f fault, at int) (*wave, system.Worker) {
	w := m.launch(f.name)
	for range len(w.streams) / 2 { // the shortest answers do not wait for the slowest
		<-w.began
	}
	victim := m.Workers()[at]
	where := m.where()
	for _, st := range w.streams {
		st.at = where[st.id]
	}
	hit := 0
	for _, at := range where {
		if at == victim.ID {
			hit++
		}
	}
	if hit < len(m.list)/4 {
		m.t.Errorf("%s: only %d of %d streams were still at %s: the answers are too short for this machine", f.name, hit, len(w.streams), victim.ID)
	}
	f.strike(m, victim)
	w.all.Wait()
	if f.after != nil {
		f.after(m, victim)
	}
	return w, victim
}

// judge looks at what became of the streams of one kind.
func (m *matrix) judge(w *wave, k kinds.Kind, victim system.Worker, f fault, undisturbed []*said.Said) (c cell) {
	for _, st := range w.streams {
		if st.kind.Name != k.Name {
			continue
		}
		if st.at == victim.ID {
			c.hit++
		}
		if err := st.verdict(undisturbed); err != nil && f.name == "terminated" && st.early(undisturbed) {
			c.early++
		} else if err != nil {
			m.t.Errorf("%s at %s, %s %s: %v", st.id, st.at, victim.ID, f.name, err)
		} else {
			c.whole++
		}
	}
	return c
}

func (m *matrix) replaced(victim system.Worker) bool {
	return slices.ContainsFunc(m.Workers(), func(w system.Worker) bool { return w.ID == victim.ID && w.Generation > victim.Generation })
}

// verdict reports why a stream is not as it should be: whole, and as one of those that
// nobody disturbed.
func (st *stream) verdict(undisturbed []*said.Said) error {
	err := st.said.Whole()
	if err != nil || st.kind.Free {
		return err
	}
	for _, u := range undisturbed {
		if err = st.said.Differs(u); err == nil {
			return nil
		}
	}
	return err
}

// early reports whether a response is the beginning of an undisturbed one and calls
// itself complete, as vLLM says of those that it aborts: nobody can tell by them.
func (st *stream) early(undisturbed []*said.Said) bool {
	return st.kind.Path == "/v1/responses" && st.said.Whole() == nil && slices.ContainsFunc(undisturbed, st.said.Begins)
}

// render is the table: of each kind and fault, the streams that came whole, of how
// many, and in brackets how many of them were at the struck server.
func render(list []kinds.Kind, table map[string][]cell, struck []string) string {
	var b strings.Builder
	b.WriteString("\n| kind | " + strings.Join(struck, " | ") + " |\n|---|" + strings.Repeat("---|", len(struck)) + "\n")
	for _, k := range list {
		fmt.Fprintf(&b, "| %s |", k.Name)
		for _, c := range table[k.Name] {
			fmt.Fprintf(&b, " %d of %d (%d)", c.whole, copies, c.hit)
			if c.early > 0 {
				fmt.Fprintf(&b, ", %d ended early by the server", c.early)
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	return b.String()
}
