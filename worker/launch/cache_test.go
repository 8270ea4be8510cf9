package launch

import (
	"strings"
	"testing"

	"roundhouse/kernels/cpu"
	"roundhouse/worker/demo"
	"roundhouse/worker/model"
)

// TestCachePlan: the flags' memory is what the model's plan divides.
func TestCachePlan(t *testing.T) {
	m, err := model.OpenFS(demo.FS)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	be, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	// 5 layers, 2 heads, keys and values of 64 columns in 2 bytes: 2,560 bytes a token.
	f := func(o Options, tokens, longest int, want string) {
		t.Helper()
		o.MaxSeqs, o.MaxBatched, o.DType, o.KVDType = 4, 64, "auto", "auto"
		p, err := cachePlan(&o, m, be)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v; want an error with %q", err, want)
			}
			return
		}
		if err != nil || p.tokens != tokens || p.maxModelLen != longest || p.groups[0].Blocks*p.groups[0].BlockTokens != tokens {
			t.Errorf("plan %+v, %v; want %d tokens, sequences of %d", p, err, tokens, longest)
		}
	}
	f(Options{KVBytes: 2560 * 10000}, 9984, 8192, "")
	f(Options{KVBytes: 2560 * 10000, BlockTokens: 16, MaxModelLen: 100}, 10000, 100, "")
	f(Options{KVBytes: 2560 * 1000}, 0, 0, "max seq len (8192)")
	f(Options{KVBytes: 2560 * 1000}, 0, 0, "estimated maximum model length is 992")
	f(Options{KVBytes: 2560 * 1000, MaxModelLen: -1}, 992, 992, "")
	f(Options{KVBytes: 2560 * 1000, MaxModelLen: 992}, 992, 992, "")
	f(Options{Blocks: 300}, 9600, 8192, "")
	f(Options{KVBytes: 1}, 0, 0, "No available memory for the cache blocks")
	f(Options{KVBytes: 1 << 30, MaxModelLen: 9000}, 0, 0, "max_model_len is 9000; want 1 to 8192")
	f(Options{}, demoBytes/2560/32*32, 8192, "")
}
