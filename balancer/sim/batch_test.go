package sim

import (
	"math/rand/v2"
	"testing"
)

// steps computes so many steps, and returns who got tokens in each, by index.
func (b *Batch) steps(n int, all ...*Sequence) (said [][]int) {
	for range n {
		st := b.Schedule()
		var who []int
		for _, s := range st.Say {
			for i := range all {
				if all[i] == s {
					who = append(who, i)
				}
			}
		}
		b.Commit(st)
		said = append(said, who)
	}
	return said
}

func TestBatchInOrder(t *testing.T) {
	b := Batch{Blocks: 100, Block: 16, Budget: 64, Seats: 8}
	long, short := &Sequence{Prompt: 150}, &Sequence{Prompt: 10}
	b.Add(long)
	b.Add(short)
	// The long prompt takes two whole steps and a part of the third, which the short
	// one shares: first come, first served.
	for i, want := range []int{0, 0, 2, 2} {
		if got := len(b.steps(1, long, short)[0]); got != want {
			t.Errorf("step %d: %d tokens; want %d", i, got, want)
		}
		if i == 0 {
			if running, waiting, usage := b.Counts(); running != 1 || waiting != 1 || usage != 0.04 {
				t.Errorf("in the prefill: %d run, %d wait, usage %g; KV is taken as it is computed", running, waiting, usage)
			}
		}
	}
}

func TestBatchPreempts(t *testing.T) {
	b := Batch{Blocks: 4, Block: 16, Budget: 64, Seats: 8}
	first, second, third := &Sequence{Prompt: 30}, &Sequence{Prompt: 30}, &Sequence{Prompt: 5}
	for _, s := range []*Sequence{first, second, third} {
		b.Add(s)
	}
	b.steps(1)
	if running, waiting, usage := b.Counts(); running != 2 || waiting != 1 || usage != 1 {
		t.Fatalf("%d run, %d wait, usage %g; want two with all of the KV, and one that waits", running, waiting, usage)
	}
	b.steps(3) // 30, 31, 32 tokens fit; the 33rd takes another block
	if b.Preemptions != 1 || first.Out != 4 || second.Out != 3 || b.waiting[0] != second {
		t.Fatalf("%d preempted, %d and %d tokens, %d wait; want the second to wait at the head with 3 tokens", b.Preemptions, first.Out, second.Out, len(b.waiting))
	}
	b.Remove(first)
	st := b.Schedule()
	if st.Prefills != 33+5 || len(st.Say) != 2 {
		t.Errorf("after room came: %+v; want all of the second's tokens computed anew, and the third admitted", st)
	}
}

// Whatever comes and goes, KV is what the sequences hold and never more than there
// is, and every sequence that can fit at all comes to its end.
func TestBatchHolds(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := Batch{Blocks: 20 + r.IntN(40), Block: 16, Budget: 32 + r.IntN(200), Seats: 1 + r.IntN(10)}
		left := map[*Sequence]int{}
		for steps := 0; len(left) > 0 || steps < 200; steps++ {
			if steps > 20_000 {
				t.Fatalf("seed %d: %d sequences never end", seed, len(left))
			}
			if steps < 200 && r.IntN(3) == 0 {
				s := &Sequence{Prompt: 1 + r.IntN(150)}
				left[s] = 1 + r.IntN(100)
				b.Add(s)
			}
			st := b.Schedule()
			if len(b.running) > b.Seats || b.used > b.Blocks || st.Prefills+st.Decodes > b.Budget {
				t.Fatalf("seed %d: %d of %d seats, %d of %d blocks, %+v in %d", seed, len(b.running), b.Seats, b.used, b.Blocks, st, b.Budget)
			}
			if len(left) > 0 && st.Prefills+st.Decodes == 0 {
				t.Fatalf("seed %d: %d sequences and nothing to compute", seed, len(left))
			}
			b.Commit(st)
			held := 0
			for _, s := range append(append([]*Sequence{}, b.running...), b.waiting...) {
				held += s.blocks
			}
			if held != b.used {
				t.Fatalf("seed %d: %d blocks are held and %d counted", seed, held, b.used)
			}
			for _, s := range st.Say {
				if left[s]--; left[s] == 0 {
					b.Remove(s)
					delete(left, s)
				}
			}
		}
		if b.used != 0 {
			t.Fatalf("seed %d: %d blocks are left", seed, b.used)
		}
	}
}
