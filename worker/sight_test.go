package worker_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"roundhouse/kernels"
	"roundhouse/worker"
	"roundhouse/worker/api"
	"roundhouse/worker/kv"
	"roundhouse/worker/workertest"
)

// glass is a slice that gives its features back, and counts how often it ran.
type glass struct {
	runs  atomic.Int64
	err   error
	aside bool    // its rows stand behind the last's
	add   float32 // to each number
}

func (g *glass) Run(step *kernels.Step, out *kernels.Result) error {
	g.runs.Add(1)
	if g.err != nil {
		return g.err
	}
	*out = kernels.Result{}
	width := len(step.Features) / len(step.Tokens)
	for i := range step.Tokens {
		row := slices.Clone(step.Features[i*width:][:width])
		for c := range row {
			row[c] += g.add
		}
		out.Output = append(out.Output, row)
	}
	return nil
}

// watched is a model that keeps what its steps have of media.
type watched struct {
	*workertest.Model
	media []float32
	axes  [][3]int32 // of all tokens, in their order
}

func (w *watched) Run(step *kernels.Step, out *kernels.Result) error {
	for i, row := range step.MediaRow {
		if row >= 0 {
			w.media = append(w.media, step.Media[2*row:2*row+2]...)
		}
		w.axes = append(w.axes, [3]int32(step.Axes[3*i:]))
	}
	plain := *step
	plain.Axes, plain.Media, plain.MediaRow = nil, nil, nil
	plain.Positions = nil
	for _, q := range step.Seqs {
		for p := q.Context - q.Count; p < q.Context; p++ {
			plain.Positions = append(plain.Positions, p)
		}
	}
	return w.Model.Run(&plain, out)
}

// seer is an engine whose tower has two slices, of rows of two numbers.
func seer(t *testing.T, budget int64, panes ...*glass) (*worker.Engine, *watched, func()) {
	t.Helper()
	groups := []kv.Group{{Blocks: 256, BlockTokens: 4}}
	m := &watched{Model: workertest.New(vocab, groups)}
	var all []worker.Slice
	for _, g := range panes {
		all = append(all, worker.Slice{Exec: g, Fold: 1, Aside: g.aside})
	}
	e := worker.NewEngine(worker.Config{
		Exec: m, Groups: groups, PrefixCache: true, Limits: worker.Limits{Tokens: 3, Seqs: 3, Rows: 3}, MaxModelLen: 128, Vocab: vocab, Models: []string{"m"}, Generation: "g",
		Tower: &worker.Tower{Slices: func() []worker.Slice { return all }, Width: 2, Budget: budget},
	})
	ctx := t.Context()
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	return e, m, func() {
		synctest.Wait()
	}
}

// item is one of two by two rows, whose numbers begin with from.
func item(first int, name byte, from float32) worker.Item {
	return worker.Item{Digest: [32]byte{name}, First: first, Lines: 2, Line: 2, Input: func() (worker.TowerInput, error) {
		v := worker.TowerInput{Axes: make([]int32, 12), Order: []int32{0, 2, 1, 3}}
		for i := range 8 {
			v.Features = append(v.Features, from+float32(i))
		}
		return v, nil
	}}
}

func seeing(e *worker.Engine, t *testing.T, n int, items ...worker.Item) *worker.Stream {
	t.Helper()
	p := params(n)
	s, err := e.Submit(worker.Request{Tokens: prompt(14, 3), Params: p, Media: items})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRowsReachTheirTokens: each token of an item has its row, in the item's own
// order, however the prompt is cut; positions have three axes; what was seen once
// is not seen again.
func TestRowsReachTheirTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := &glass{}, &glass{}
		e, m, settle := seer(t, 1<<20, one, two)
		a := collect(seeing(e, t, 2, item(2, 'a', 10), item(7, 'b', 20)), 1)
		settle()
		want := []float32{10, 11, 14, 15, 12, 13, 16, 17, 20, 21, 24, 25, 22, 23, 26, 27}
		if a.err != nil || !slices.Equal(m.media, want) {
			t.Fatalf("rows %v (%v); want %v", m.media, a.err, want)
		}
		places := [][3]int32{{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {2, 2, 3}, {2, 3, 2}, {2, 3, 3}, {4, 4, 4}, {5, 5, 5}, {5, 5, 6}, {5, 6, 5}, {5, 6, 6}, {7, 7, 7}, {8, 8, 8}, {9, 9, 9}, {10, 10, 10}}
		if !slices.Equal(m.axes, places) {
			t.Errorf("positions %v; want %v", m.axes, places)
		}
		b := collect(seeing(e, t, 2, item(2, 'a', 10), item(7, 'c', 30)), 1)
		if b.cached != 4 || one.runs.Load() != 3 || two.runs.Load() != 3 {
			t.Errorf("%d tokens cached and %d and %d slices run; want 4, 3 and 3: the second item is another", b.cached, one.runs.Load(), two.runs.Load())
		}
		// Two that want the same at once, and rows that no budget holds.
		x, y := seeing(e, t, 2, item(2, 'd', 1)), seeing(e, t, 2, item(2, 'd', 1))
		collect(x, 1)
		collect(y, 1)
		if one.runs.Load() != 4 {
			t.Errorf("an item that two requests have was seen %d times; want once", one.runs.Load()-3)
		}
	})
}

// TestRowsAside: what a slice puts aside stands behind the last slice's rows, and
// the next slice reads what it has read.
func TestRowsAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, m, settle := seer(t, 1<<20, &glass{add: 1}, &glass{aside: true, add: 100}, &glass{add: 10})
		it := item(2, 'a', 0)
		it.Input = func() (worker.TowerInput, error) {
			return worker.TowerInput{Features: []float32{0, 1, 2, 3}, Axes: make([]int32, 12), Order: []int32{0, 2, 1, 3}}, nil
		}
		a := collect(seeing(e, t, 2, it), 1)
		settle()
		if want := []float32{11, 101, 13, 103, 12, 102, 14, 104}; a.err != nil || !slices.Equal(m.media, want) {
			t.Errorf("rows %v (%v); want %v", m.media, a.err, want)
		}
	})
}

// TestSmallBudget: requests whose rows do not fit together go one after the other.
func TestSmallBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &glass{}
		e, _, _ := seer(t, 40, g)
		var streams []*worker.Stream
		for i := range byte(6) {
			streams = append(streams, seeing(e, t, 3, item(1, 'a'+i, 1), item(6, 'k'+i%2, 2)))
		}
		for _, s := range streams {
			if a := collect(s, 1); a.err != nil || a.why[0] != worker.FinishLength {
				t.Fatalf("%v: %v", a.why, a.err)
			}
		}
	})
}

// TestUnseen: an item that cannot be made, breaks or fails in the tower ends its
// request alone; one that nobody waits for any more holds up no other.
func TestUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &glass{}
		e, _, _ := seer(t, 1<<20, g)
		ends := func(it worker.Item) {
			t.Helper()
			if a := collect(seeing(e, t, 2, it), 1); a.why[0] != worker.FinishError {
				t.Errorf("it ended by %v", a.why)
			}
		}
		broken := item(2, 'a', 1)
		broken.Input = func() (worker.TowerInput, error) { panic("a decoder") }
		ends(broken)
		broken.Input = func() (worker.TowerInput, error) { return worker.TowerInput{}, errors.New("no picture") }
		ends(broken)
		g.err = &kernels.StepError{Seq: -1, Err: errors.New("too hot")}
		ends(item(2, 'b', 1))
		g.err = nil
		slow, hold := item(2, 'c', 1), make(chan struct{})
		inner := slow.Input
		slow.Input = func() (worker.TowerInput, error) { <-hold; return inner() }
		gone := seeing(e, t, 2, slow)
		gone.Close()
		if a := collect(seeing(e, t, 2, item(2, 'd', 1)), 1); a.err != nil || a.why[0] != worker.FinishLength {
			t.Errorf("behind one that hung up: %v, %v", a.why, a.err)
		}
		close(hold)
		if _, err := e.Submit(worker.Request{Tokens: prompt(4, 1), Params: params(1), Media: []worker.Item{item(2, 'e', 1)}}); err == nil {
			t.Error("an item beyond its prompt was taken in")
		}
	})
}

// TestPositionsOfGolden holds positions to transformers.
func TestPositionsOfGolden(t *testing.T) {
	for _, name := range []string{"qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5_vl", "qwen3_5_moe_vl", "glm4v"} {
		t.Run(name, func(t *testing.T) { positionsOfGolden(t, name) })
	}
}

func positionsOfGolden(t *testing.T, name string) {
	data, err := os.ReadFile("model/testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		IDs       []int32
		Grids     [][3]int
		Positions [3][]int32
		Delta     int
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	var items []worker.Item
	for i := 0; i < len(golden.IDs); i++ {
		if golden.IDs[i] == 70 {
			g := golden.Grids[len(items)]
			items = append(items, worker.Item{First: i, Lines: g[1] / 2, Line: g[2] / 2})
			i += items[len(items)-1].Count()
		}
	}
	places, shift := worker.PositionsOf(len(golden.IDs), items)
	for axis, want := range golden.Positions {
		for i, p := range want {
			if places[3*i+axis] != p {
				t.Fatalf("token %d, axis %d: position %d; want %d", i, axis, places[3*i+axis], p)
			}
		}
	}
	if shift != golden.Delta || len(places) != 3*len(golden.IDs) {
		t.Errorf("%d positions, then the index and %d; want %d and %d", len(places), shift, 3*len(golden.IDs), golden.Delta)
	}
}

// TestModalities: the status says what a prompt may hold, pictures if there is a tower.
func TestModalities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, settle := seer(t, 1<<20, &glass{})
		settle()
		told := errors.New("told")
		var got []string
		err := e.Watch(t.Context(), func(s api.Status) error {
			got = s.Modalities
			return told
		})
		if !errors.Is(err, told) || !slices.Equal(got, []string{"text", "image"}) {
			t.Errorf("%v: %q", err, got)
		}
	})
}
