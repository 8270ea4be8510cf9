package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"roundhouse/worker"
	"roundhouse/worker/api"
	"roundhouse/worker/workertest"
)

// loadAdapter fills a slot of the model of no weights by the path alone.
func loadAdapter(m *workertest.Model, slot int, path string) error {
	m.Adapters[slot] = 0
	if path == "missing" {
		return fmt.Errorf("there is nothing at %s", path)
	}
	for _, b := range []byte(path) {
		m.Adapters[slot] = m.Adapters[slot]*131 + uint64(b)
	}
	return nil
}

// adapted runs one request and returns its tokens and how much of its prompt
// was cached.
func adapted(t *testing.T, e *worker.Engine, adapter string, tokens []int32) ([]int32, int) {
	t.Helper()
	a := collect(submitTo(t, e, adapter, tokens), 1)
	if a.err != nil {
		t.Fatalf("%s: %v", adapter, a.err)
	}
	return a.tokens[0], a.cached
}

func submitTo(t *testing.T, e *worker.Engine, adapter string, tokens []int32) *worker.Stream {
	t.Helper()
	s, err := e.Submit(worker.Request{ID: adapter, Tokens: tokens, Params: params(8), Adapter: e.Adapter(adapter)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func load(t *testing.T, e *worker.Engine, name, path string, inplace bool) {
	t.Helper()
	if err := e.LoadAdapter(context.Background(), worker.Adapter{Name: name, Path: path}, inplace); err != nil {
		t.Fatalf("loading %s: %v", name, err)
	}
}

// TestAdapterCompany: requests of two adapters and of none get the tokens that
// each gets alone, and none finds the cached prompt of another.
func TestAdapterCompany(t *testing.T) {
	e, m := start(t, setup{adapters: 2})
	load(t, e, "a", "path of a", false)
	load(t, e, "b", "path of b", false)
	tokens := prompt(40, 1)
	var want [][]int32
	for _, name := range []string{"", "a", "b"} {
		got, cached := adapted(t, e, name, tokens)
		if cached != 0 {
			t.Errorf("%q found %d tokens of another's prompt", name, cached)
		}
		if again, cached := adapted(t, e, name, tokens); cached == 0 || !slices.Equal(again, got) {
			t.Errorf("%q again: %d tokens cached, %v; want %v", name, cached, again, got)
		}
		want = append(want, got)
	}
	if slices.Equal(want[0], want[1]) || slices.Equal(want[1], want[2]) || slices.Equal(want[0], want[2]) {
		t.Fatalf("the adapters make no difference: %v", want)
	}
	release := m.Hold()
	var streams []*worker.Stream
	for i := range 12 {
		streams = append(streams, submitTo(t, e, []string{"", "a", "b"}[i%3], tokens))
	}
	release()
	for i, s := range streams {
		if got := collect(s, 1); got.err != nil || !slices.Equal(got.tokens[0], want[i%3]) {
			t.Errorf("request %d in company: %v, %v; want %v", i, got.tokens, got.err, want[i%3])
		}
	}
}

// TestAdapterSlots loads and unloads beside requests that run: they go on with
// what they began with, and their slot is nobody else's.
func TestAdapterSlots(t *testing.T) {
	ctx := context.Background()
	e, m := start(t, setup{adapters: 2})
	tokens := prompt(20, 2)
	load(t, e, "a", "one", false)
	first, _ := adapted(t, e, "a", tokens)
	load(t, e, "other", "two", false)
	second, _ := adapted(t, e, "other", tokens)

	refused := func(what string, want error, text string, err error) {
		t.Helper()
		if want != nil && !errors.Is(err, want) || err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v; want %v with %q", what, err, want, text)
		}
	}
	refused("the same name again", worker.ErrAdapterLoaded, "", e.LoadAdapter(ctx, worker.Adapter{Name: "a", Path: "two"}, false))
	refused("a third", nil, "all 2 slots", e.LoadAdapter(ctx, worker.Adapter{Name: "c", Path: "three"}, false))
	refused("an unknown one", worker.ErrAdapterUnknown, "", e.UnloadAdapter(ctx, "c"))
	if err := e.UnloadAdapter(ctx, "other"); err != nil {
		t.Fatal(err)
	}
	refused("a path with nothing", nil, "nothing at missing", e.LoadAdapter(ctx, worker.Adapter{Name: "c", Path: "missing"}, false))

	// A request on a begins; a is replaced under it, and taken away altogether.
	release := m.Hold()
	running := submitTo(t, e, "a", tokens)
	stale := e.Adapter("a")
	loaded := make(chan error, 1)
	go func() { loaded <- e.LoadAdapter(ctx, worker.Adapter{Name: "a", Path: "two"}, true) }()
	release()
	if err := <-loaded; err != nil {
		t.Fatal(err)
	}
	if got := collect(running, 1); got.err != nil || !slices.Equal(got.tokens[0], first) {
		t.Errorf("a request whose adapter was replaced: %v, %v; want %v", got.tokens, got.err, first)
	}
	if got, cached := adapted(t, e, "a", tokens); cached != 0 || !slices.Equal(got, second) {
		t.Errorf("after the replacement: %v with %d tokens of the old one's cache; want %v", got, cached, second)
	}
	load(t, e, "c", "three", false) // in the slot of the old a
	s, err := e.Submit(worker.Request{Tokens: tokens, Params: params(8), Adapter: stale})
	if err != nil {
		t.Fatal(err)
	}
	if got := collect(s, 1); got.err == nil || !strings.Contains(got.err.Error(), "was unloaded") {
		t.Errorf("a request that came too late: %v, %v", got.tokens, got.err)
	}
}

// TestAdapterSleep: adapters are there again after a sleep, those alone that
// are wanted, and the status names them.
func TestAdapterSleep(t *testing.T) {
	ctx := context.Background()
	e, m := start(t, setup{adapters: 2})
	tokens := prompt(20, 3)
	load(t, e, "a", "one", false)
	load(t, e, "gone", "two", false)
	want, _ := adapted(t, e, "a", tokens)
	if err := e.UnloadAdapter(ctx, "gone"); err != nil {
		t.Fatal(err)
	}
	if err := e.Sleep(ctx, 1); err != nil {
		t.Fatal(err)
	}
	clear(m.Adapters)
	if err := e.LoadAdapter(ctx, worker.Adapter{Name: "b", Path: "two"}, false); err == nil {
		t.Error("an adapter was loaded into a worker that sleeps")
	}
	if err := e.WakeUp(ctx); err != nil {
		t.Fatal(err)
	}
	if m.Adapters[1] != 0 {
		t.Error("an adapter that nobody wants was loaded again")
	}
	if got, _ := adapted(t, e, "a", tokens); !slices.Equal(got, want) {
		t.Errorf("after the sleep: %v; want %v", got, want)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	_ = e.Watch(watching, func(s api.Status) error {
		if slices.Equal(s.Models, []string{"m", "a"}) {
			stop()
		}
		return nil
	})
}
