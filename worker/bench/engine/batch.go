package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/worker/grammar"
	"roundhouse/worker/grammar/grammartest"
)

// The prompts of the measurements of batching.
const (
	longTokens  = 4000 // of a prompt that another request stands behind; two share half as many
	shortTokens = 20
)

// batch measures what the scheduler is for, on our worker alone: streams
// together against one, a shared beginning, a short request behind a long one,
// and what masks cost.
func (m *measured) batch() error {
	long := longTokens
	if m.prompt < 512 { // the short form
		long = 400
	}
	s, err := startServer(m.worker, func(port int) []string {
		return []string{"serve", "--model", m.dir, "--host", "127.0.0.1", "--port", strconv.Itoa(port), "--quantization", m.flag, "--weights-cache", "off",
			"--cpus", "0-" + strconv.Itoa(m.threads-1), "--max-num-seqs", strconv.Itoa(m.streams), "--max-num-batched-tokens", "512", "--max-model-len", strconv.Itoa(long + 1000)}
	})
	if err != nil {
		return err
	}
	defer s.stop()
	var one, all, gain, cold, warm, hit, alone, behind []float64
	for round := range m.rounds {
		seed := uint64(round) + 1
		a, err := m.rate(s, 1, seed)
		if err != nil {
			return err
		}
		b, err := m.rate(s, m.streams, seed+1000)
		if err != nil {
			return err
		}
		one, all, gain = append(one, a), append(all, b), append(gain, b/a)
		c, d, err := m.shared(s, long/2, seed)
		if err != nil {
			return err
		}
		cold, warm, hit = append(cold, c), append(warm, d), append(hit, c/d)
		if c, d, err = m.behind(s, long, seed); err != nil {
			return err
		}
		alone, behind = append(alone, c), append(behind, d)
	}
	m.table.add(line{name: fmt.Sprintf("%s %d streams ÷ one", m.name, m.streams), unit: "×", ours: median(gain), goal: "6",
		beside: fmt.Sprintf("%.1f t/s against %.1f", median(all), median(one))})
	m.table.add(line{name: fmt.Sprintf("%s first token, %d shared", m.name, long/2), unit: "×", ours: median(hit), goal: "5",
		beside: fmt.Sprintf("%.0f ms, then %.0f ms", median(cold)*1e3, median(warm)*1e3)})
	m.table.add(line{name: fmt.Sprintf("%s first token behind %d", m.name, long), unit: "ms", ours: median(behind) * 1e3, goal: "2 steps more",
		beside: fmt.Sprintf("%.0f ms alone", median(alone)*1e3)})
	p99, most, err := masks()
	if err != nil {
		return err
	}
	m.table.add(line{name: m.name + " masks, p99 of a step", unit: "%", ours: 100 * p99 * median(one), goal: "at most 5",
		beside: fmt.Sprintf("%.0f µs, at most %.0f µs; first visits included, 152,000 tokens", p99*1e6, most*1e6)})
	return nil
}

// random draws n tokens that no other seed draws.
func (m *measured) random(n int, seed, stream uint64) []int {
	rng := rand.New(rand.NewPCG(seed, stream))
	ids := make([]int, n)
	for i := range ids {
		ids[i] = rng.IntN(m.shape.Vocab - 1)
	}
	return ids
}

// rate is the tokens a second of n streams with short prompts.
func (m *measured) rate(s *server, n int, seed uint64) (float64, error) {
	var wait sync.WaitGroup
	errs := make([]error, n)
	begin := time.Now()
	for i := range n {
		wait.Go(func() { _, errs[i] = complete(s.url, m.random(16, seed, uint64(i)), m.generate) })
	}
	wait.Wait()
	return float64(n*m.generate) / time.Since(begin).Seconds(), errors.Join(errs...)
}

// first is the seconds to a first token.
func first(s *server, ids []int) (float64, error) {
	begin := time.Now()
	_, err := complete(s.url, ids, 1)
	return time.Since(begin).Seconds(), err
}

// shared asks twice with a beginning in common.
func (m *measured) shared(s *server, n int, seed uint64) (cold, warm float64, err error) {
	prompt := m.random(n, seed, 1<<32)
	if cold, err = first(s, append(slices.Clone(prompt), 1, 2, 3)); err != nil {
		return 0, 0, err
	}
	warm, err = first(s, append(slices.Clone(prompt), 4, 5, 6))
	return cold, warm, err
}

// behind asks a short prompt alone, and while a long one is being computed.
func (m *measured) behind(s *server, long int, seed uint64) (alone, after float64, err error) {
	if alone, err = first(s, m.random(shortTokens, seed, 2<<32)); err != nil {
		return 0, 0, err
	}
	ended := make(chan error, 1)
	go func() {
		_, err := first(s, m.random(long, seed, 3<<32))
		ended <- err
	}()
	time.Sleep(time.Duration(alone * float64(time.Second))) // the long one has begun by then
	after, err = first(s, m.random(shortTokens, seed, 4<<32))
	return alone, after, errors.Join(err, <-ended)
}

// masks walks through answers of the written schemas and returns the 99th
// percentile of what a mask and a token take, and the most, in seconds of the
// processor.
func masks() (p99, most float64, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	words := grammartest.LargeVocab()
	v := grammar.NewVocab(words, []int32{int32(len(words) - 1)})
	var took []float64
	for seed, schema := range grammartest.Schemas()[:47] {
		g, err := grammar.Compile(grammar.Spec{JSONSchema: schema}, v)
		if err != nil {
			return 0, 0, err
		}
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		at := g.Start()
		for left := 200; left > 0 && !at.Done(); left-- {
			begin := threadTime()
			mask := at.Mask(left)
			spent := threadTime() - begin
			token := draw(rng, mask)
			begin = threadTime()
			if err := at.Advance(token); err != nil {
				return 0, 0, err
			}
			took = append(took, (spent + threadTime() - begin).Seconds())
		}
	}
	slices.Sort(took)
	return took[len(took)*99/100], took[len(took)-1], nil
}

// threadTime is what this thread has computed so far.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(fmt.Sprintf("BUG: a thread has no clock: %v", err))
	}
	return time.Duration(t.Nano())
}

// draw picks a token of a mask.
func draw(rng *rand.Rand, mask []uint32) int32 {
	for {
		from := rng.IntN(len(mask))
		for i := range mask {
			if w := mask[(from+i)%len(mask)]; w != 0 {
				for bit := range 32 {
					if w&(1<<bit) != 0 && rng.IntN(2) == 0 {
						return int32((from+i)%len(mask)*32 + bit)
					}
				}
			}
		}
	}
}
