package launch

import (
	"strings"
	"testing"

	"roundhouse/kernels/cpu"
	"roundhouse/worker/demo"
	"roundhouse/worker/device"
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
		p, err := cachePlan(&o, m, be, device.Room{})
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
	f(Options{Machine: Machine{KVBytes: 2560 * 10000}}, 9984, 8192, "")
	f(Options{Machine: Machine{KVBytes: 2560 * 10000}, Scheduling: Scheduling{BlockTokens: 16, MaxModelLen: 100}}, 10000, 100, "")
	f(Options{Machine: Machine{KVBytes: 2560 * 1000}}, 0, 0, "max seq len (8192)")
	f(Options{Machine: Machine{KVBytes: 2560 * 1000}}, 0, 0, "estimated maximum model length is 992")
	f(Options{Machine: Machine{KVBytes: 2560 * 1000}, Scheduling: Scheduling{MaxModelLen: -1}}, 992, 992, "")
	f(Options{Machine: Machine{KVBytes: 2560 * 1000}, Scheduling: Scheduling{MaxModelLen: 992}}, 992, 992, "")
	f(Options{Machine: Machine{Blocks: 300}}, 9600, 8192, "")
	f(Options{Machine: Machine{KVBytes: 1}}, 0, 0, "No available memory for the cache blocks")
	f(Options{Machine: Machine{KVBytes: 1 << 30}, Scheduling: Scheduling{MaxModelLen: 9000}}, 0, 0, "max_model_len is 9000; want 1 to 8192")
	f(Options{}, demoBytes/2560/32*32, 8192, "")
}

// TestMemoryOfMachine holds that a start on CPUs asks for no more than the machine
// or its control group leaves: fewer pages where the flags leave them open, and a
// sentence where weights, a step and pages do not fit.
func TestMemoryOfMachine(t *testing.T) {
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
	open := func(o Options, room int64) (plan, error) {
		o.MaxSeqs, o.MaxBatched, o.DType, o.KVDType = 4, 64, "auto", "auto"
		return cachePlan(&o, m, be, device.Room{Bytes: room, Limit: "memory.max of /here"})
	}
	all, err := open(Options{}, 64<<30)
	if err != nil || all.bytes != demoBytes {
		t.Fatalf("with all the memory: %+v, %v", all, err)
	}
	rest := all.total - all.bytes // weights and a step
	for _, room := range []int64{rest + 96<<20, rest + 256<<20, 1 << 30} {
		p, err := open(Options{}, room)
		if err != nil || p.total > room || p.bytes > room/4 || p.tokens < 8192 {
			t.Errorf("%d bytes: %+v, %v", room, p, err)
		}
	}
	refused := func(o Options, room int64, want string) {
		t.Helper()
		if p, err := open(o, room); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "memory.max of /here leaves") {
			t.Errorf("%d bytes: %+v, %v; want %q", room, p, err, want)
		}
	}
	refused(Options{}, rest, "No available memory for the cache blocks. Weights take")
	refused(Options{}, 1, "No available memory")
	refused(Options{}, rest+16<<20, "max seq len (8192)")
	refused(Options{Machine: Machine{KVBytes: 128 << 20}}, rest+100<<20, "less is to be asked of --kv-cache-memory-bytes")
	refused(Options{Machine: Machine{Blocks: 2000}}, rest+100<<20, "--num-gpu-blocks-override")
	if p, err := open(Options{Machine: Machine{KVBytes: 128 << 20}}, rest+140<<20); err != nil || p.total > rest+140<<20 {
		t.Errorf("pages that fit: %+v, %v", p, err)
	}
}
