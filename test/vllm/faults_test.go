//go:build vllm

package vllm

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"roundhouse/test/vllm/kinds"
	"roundhouse/test/vllm/said"
)

// A fault is what happens to one of two servers while both have streams.
type fault struct {
	name   string
	strike func(s *system, victim worker)
	after  func(s *system, victim worker) // once all streams have ended
}

var faults = []fault{
	{"killed", signal(syscall.SIGKILL), nil},
	{"terminated", signal(syscall.SIGTERM), nil},
	{"stopped", signal(syscall.SIGSTOP), signal(syscall.SIGKILL)},
	{"drained", verb("drain"), verb("undrain")},
	{"rotated", verb("rotate"), nil},
}

func verb(v string) func(*system, worker) {
	return func(s *system, w worker) { s.post("/api/workers/"+w.ID+"/"+v, "{}") }
}

// signal sends a signal to a server and all its helpers.
func signal(sig syscall.Signal) func(*system, worker) {
	return func(s *system, w worker) {
		to := -w.Place.PID
		if sig == syscall.SIGTERM {
			to = w.Place.PID // as whoever stops a server does
		}
		if err := syscall.Kill(to, sig); err != nil {
			s.t.Fatalf("signal %v to %s: %v", sig, w.ID, err)
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
	live atomic.Bool
	said *said.Said
}

// wave is a stream of every kind, twice.
type wave struct {
	s       *system
	streams []*stream
	all     sync.WaitGroup
	began   sync.WaitGroup // each stream once it has said something
}

// launch begins streams of all kinds one after the other, so that the copies of one go
// to different servers.
func (s *system) launch(list []kinds.Kind, tag string) *wave {
	w := &wave{s: s}
	for _, k := range list {
		for i := range copies {
			st := &stream{kind: k, id: tag + "-" + k.Name + "-" + strconv.Itoa(i)}
			w.streams = append(w.streams, st)
			w.began.Add(1)
			sent := make(chan struct{})
			w.all.Go(func() { st.run(s.Door, &w.began, sent) })
			<-sent
			s.until(st.id+" is under way", func() bool { return !st.live.Load() || s.where()[st.id] != "" })
		}
	}
	return w
}

// run carries one stream to its end.
func (st *stream) run(door string, began *sync.WaitGroup, sent chan struct{}) {
	var once sync.Once
	defer once.Do(began.Done)
	st.live.Store(true)
	defer st.live.Store(false)
	req, err := http.NewRequestWithContext(context.Background(), "POST", door+st.kind.Path, bytes.NewReader(st.kind.Body(true)))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", st.id)
	close(sent)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		st.said = &said.Said{Errors: []string{err.Error()}}
		return
	}
	defer res.Body.Close()
	st.said = said.Read(st.kind.Path, res.StatusCode, res.Body, func(s *said.Said) {
		if s.Events == 2 {
			once.Do(began.Done)
		}
	})
}

// where is the worker of every request that the door has in flight.
func (s *system) where() map[string]string {
	var list []struct{ ID, Worker string }
	s.get("/api/requests", &list)
	at := map[string]string{}
	for _, r := range list {
		at[r.ID] = r.Worker
	}
	return at
}

// cell is one cell of the table.
type cell struct{ hit, whole int }

// TestStreams strikes one of two servers under streams of every kind. Each comes
// whole and equal to one that nobody disturbed.
func TestStreams(t *testing.T) {
	model, err := filepath.Abs("../../worker/demo/model")
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, model, "")
	s.matrix(kinds.Streams(5, 150))
}

// TestThoughts is TestStreams of a model that thinks before it answers.
func TestThoughts(t *testing.T) {
	dir := t.TempDir()
	if err := kinds.Thinker("../../worker/demo/model", dir); err != nil {
		t.Fatal(err)
	}
	s := start(t, dir, `reasoning_end = "</think>"`, "--reasoning-parser", "deepseek_r1")
	s.matrix(kinds.Reasoning(150))
}

// matrix strikes by every fault, and prints kinds × faults.
func (s *system) matrix(list []kinds.Kind) {
	t := s.t
	undisturbed := map[string][]*said.Said{}
	for round := range 2 {
		w := s.launch(list, fmt.Sprint("undisturbed-", round))
		w.all.Wait()
		for _, st := range w.streams {
			if err := st.said.Whole(); err != nil {
				t.Errorf("%s: %v", st.id, err)
			}
			undisturbed[st.kind.Name] = append(undisturbed[st.kind.Name], st.said)
		}
	}
	table := map[string][]cell{}
	for i, f := range faults {
		s.ready()
		w := s.launch(list, f.name)
		w.began.Wait()
		victim := s.workers()[i%2]
		for id, at := range s.where() {
			for _, st := range w.streams {
				if st.id == id {
					st.at = at
				}
			}
		}
		f.strike(s, victim)
		w.all.Wait()
		if f.after != nil {
			f.after(s, victim)
		}
		for _, k := range list {
			var c cell
			for _, st := range w.streams {
				if st.kind.Name != k.Name {
					continue
				}
				if st.at == victim.ID {
					c.hit++
				}
				if err := st.verdict(undisturbed[k.Name]); err != nil {
					t.Errorf("%s at %s, %s %s: %v", st.id, st.at, victim.ID, f.name, err)
				} else {
					c.whole++
				}
			}
			table[k.Name] = append(table[k.Name], c)
		}
		s.until("the struck server is another", func() bool { return f.name == "drained" || s.replaced(victim) })
	}
	t.Log(render(list, table))
}

func (s *system) replaced(victim worker) bool {
	return slices.ContainsFunc(s.workers(), func(w worker) bool { return w.ID == victim.ID && w.Generation > victim.Generation })
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

// render is the table: of each kind and fault, the streams that came whole, of how
// many, and in brackets how many of them were at the struck server.
func render(list []kinds.Kind, table map[string][]cell) string {
	var b strings.Builder
	b.WriteString("\n| kind |")
	for _, f := range faults {
		b.WriteString(" " + f.name + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(faults)) + "\n")
	for _, k := range list {
		fmt.Fprintf(&b, "| %s |", k.Name)
		for _, c := range table[k.Name] {
			fmt.Fprintf(&b, " %d of %d (%d) |", c.whole, copies, c.hit)
		}
		b.WriteString("\n")
	}
	return b.String()
}
