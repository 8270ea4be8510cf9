//go:build ailing

package ailing

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"roundhouse/test/ports"
	"roundhouse/test/program"
)

// owned is an illness of our own engine: settings that are bad on purpose, or clients
// that are. Without a rule it is a service that is well.
type owned struct {
	name    string
	rule    string
	also    []string
	flags   []string   // of each worker
	differs [][]string // by worker: flags besides, of as many workers as there are entries
	limit   int        // of the key's requests at once
	cause   string
	change  string
	provoke func(*stand, []*exec.Cmd)
}

// fresh is a request whose prompt nobody has sent before: what differs stands in front.
func fresh(prompt, tokens int) func(int, int) (string, int) {
	return func(c, n int) (string, int) { return fmt.Sprintf("%d.%d: %s", c, n, words(prompt)), tokens }
}

// think lets a client ask the door again and again, and do something else in between.
func (s *stand) think(pause time.Duration, make func(client, n int) (string, int)) {
	s.clients.Go(func() {
		for n := 0; s.ctx.Err() == nil; n++ {
			prompt, tokens := make(1000, n)
			s.ask(s.door, prompt, tokens, 0)
			select {
			case <-s.ctx.Done():
			case <-time.After(pause):
			}
		}
	})
}

// owns are the provocations of our own engine on the demonstration model. A least time of
// a step stands for a model of some size.
func owns() []owned {
	three := [][]string{nil, nil, nil}
	past := func(clients, prompt, tokens int) func(*stand, []*exec.Cmd) {
		return func(s *stand, _ []*exec.Cmd) { s.loop(clients, s.engines[0], same(prompt, tokens), 0) }
	}
	by := func(clients int, make func(int, int) (string, int), patience time.Duration) func(*stand, []*exec.Cmd) {
		return func(s *stand, _ []*exec.Cmd) { s.loop(clients, s.door, make, patience) }
	}
	return []owned{
		{name: "tiny KV cache, clients past the door", rule: "kv-thrashing", also: []string{"blind", "prefill-starvation", "over-capacity"}, flags: []string{"--pace", "5ms", "--max-model-len", "512", "--num-gpu-blocks-override", "40"}, cause: "others than the door", provoke: past(16, 20, 200)},
		{name: "long streams in four seats", rule: "prefill-starvation", also: []string{"blind", "under-use"}, flags: []string{"--pace", "10ms", "--max-num-seqs", "4"}, cause: "all 4 seats", change: `"--max-num-seqs", "16"`, provoke: past(16, 10, 60)},
		{name: "one seat", rule: "prefill-starvation", also: []string{"over-capacity", "under-use", "blind"}, flags: []string{"--pace", "10ms", "--max-num-seqs", "1"}, cause: "all 1 seats", change: `"--max-num-seqs", "4"`, provoke: past(8, 10, 20)},
		{name: "a key with one request at once", rule: "under-use", flags: []string{"--pace", "5ms"}, limit: 1, cause: `the key "team" may have 1`, change: "max_concurrent = 4", provoke: by(8, same(10, 10), 0)},
		{name: "long prompts beside streams", rule: "decode-starvation", also: []string{"long-requests", "wrong-prediction"}, flags: []string{"--pace", "3ms", "--max-num-batched-tokens", "512", "--long-prefill-token-threshold", "512"}, cause: "hold up", change: `"--max-num-batched-tokens", "256"`, provoke: func(s *stand, _ []*exec.Cmd) {
			began := time.Now()
			s.ask(s.door, words(1400), 2, 0)
			alone := time.Since(began) // a long prompt's time, on this machine
			s.loop(8, s.door, same(10, 400), 0)
			s.think(alone/5, fresh(1400, 2))
		}},
		{name: "a few long prompts among short ones", rule: "long-requests", also: []string{"decode-starvation", "wrong-prediction"}, flags: []string{"--max-num-batched-tokens", "8192", "--long-prefill-token-threshold", "8192"}, cause: "a few long prompts", change: "--long-prefill-token-threshold", provoke: func(s *stand, _ []*exec.Cmd) {
			s.every(50*time.Millisecond, s.door, func(n int) (string, int) { return fresh(10, 2)(0, n) })
			s.think(700*time.Millisecond, fresh(700, 2))
		}},
		{name: "one worker of four takes its time", rule: "slow-worker", flags: []string{"--pace", "20ms"}, differs: [][]string{nil, nil, {"--pace", "60ms"}, nil}, cause: "this engine or its device is slow", change: "slowdown", provoke: func(s *stand, _ []*exec.Cmd) {
			for _, e := range s.engines {
				s.loop(2, e, same(10, 100), 0)
			}
		}, also: []string{"blind"}},
		{name: "more comes than is served", rule: "over-capacity", also: []string{"prefill-starvation", "under-use"}, flags: []string{"--pace", "20ms", "--max-num-seqs", "2"}, cause: "too slow for what comes", provoke: func(s *stand, _ []*exec.Cmd) {
			s.every(40*time.Millisecond, s.door, func(int) (string, int) { return words(10), 20 })
		}},
		{name: "prefix caching switched off", rule: "prefix-misses", also: []string{"decode-starvation"}, flags: []string{"--pace", "5ms", "--no-enable-prefix-caching"}, cause: "switched off", provoke: by(4, same(300, 4), 0)},
		{name: "what differs in front of what is shared", rule: "prefix-misses", also: []string{"decode-starvation"}, flags: []string{"--pace", "5ms"}, cause: "prompts differ", provoke: by(4, fresh(300, 4), 0)},
		{name: "most of the cache taken past the door", rule: "blind", also: []string{"prefill-starvation"}, flags: []string{"--pace", "5ms", "--max-model-len", "512", "--num-gpu-blocks-override", "80"}, cause: "somebody else sends", provoke: past(8, 20, 200)},
		{name: "clients with a tenth of a second", rule: "clients-leave", also: []string{"over-capacity", "prefill-starvation", "under-use"}, flags: []string{"--pace", "20ms", "--max-num-seqs", "2"}, cause: "lose patience", provoke: func(s *stand, _ []*exec.Cmd) {
			s.loop(12, s.door, same(10, 20), 100*time.Millisecond)
			s.loop(2, s.door, same(10, 2), 0)
		}},
		{name: "one worker of three is killed under streams", rule: "worker-errors", flags: []string{"--pace", "10ms"}, differs: three, cause: "this worker is at fault", provoke: func(s *stand, w []*exec.Cmd) {
			s.loop(36, s.door, same(10, 40), 0)
			time.AfterFunc(time.Second, func() { _ = w[1].Process.Kill() })
		}},
		{name: "eight clients", flags: []string{"--pace", "5ms"}, differs: [][]string{nil, nil}, provoke: by(8, same(50, 50), 0)},
		{name: "clients that vanish, then nobody", also: []string{"clients-leave"}, flags: []string{"--pace", "5ms"}, provoke: func(s *stand, _ []*exec.Cmd) {
			for range 8 {
				s.clients.Go(func() {
					for range 10 {
						s.ask(s.door, words(50), 400, 60*time.Millisecond)
					}
				})
			}
		}},
	}
}

// ownEngines starts workers of ours.
func ownEngines(t *testing.T, binary string, x *owned) (urls []string, all []*exec.Cmd) {
	t.Helper()
	differs := x.differs
	if differs == nil {
		differs = [][]string{nil}
	}
	for _, more := range differs {
		port := ports.Free(t)
		args := append(append([]string{"serve", "--host", "127.0.0.1", "--port", strconv.Itoa(port)}, x.flags...), more...)
		cmd := exec.Command(binary, args...)
		var said strings.Builder
		cmd.Stderr = &said
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill() // it may be gone
			_ = cmd.Wait()
			if t.Failed() {
				t.Logf("%v:\n%s", args, said.String())
			}
		})
		urls, all = append(urls, fmt.Sprintf("http://127.0.0.1:%d", port)), append(all, cmd)
	}
	return urls, all
}

// Our own engine is made ill by bad settings and bad clients, one at a time: each illness
// is found with its cause and what mends it, and nothing that is neither it nor its effect.
func TestFoundOwn(t *testing.T) {
	var built program.Set
	t.Cleanup(built.Remove)
	binary := built.Path(t, "roundhouse-worker")
	for _, x := range owns() {
		t.Run(x.name, func(t *testing.T) {
			urls, workers := ownEngines(t, binary, &x)
			s := newStandOf(t, "roundhouse", x.limit, urls...)
			x.provoke(s, workers)
			ill := illness{args: x.flags, limit: x.limit}
			report := ill.judge(s.record(6*time.Second), len(urls))
			is := compare(&report, x.rule, x.also)
			if x.rule == "" {
				t.Logf("healthy own engine, %s: %d false", x.name, len(is.wrong))
			} else {
				t.Logf("provoked %s, own engine, %s: %s", x.rule, x.name, is)
			}
			if len(is.wrong) > 0 {
				t.Errorf("also found %v: %s", is.wrong, told(&report))
			}
			if x.rule != "" {
				whole(t, &report, x.rule, x.cause, x.change)
			}
		})
	}
}
