package evaluate

import (
	"fmt"
	"sync/atomic"
	"time"

	"roundhouse/worker/device"
)

// sums measures all-reduces over threads in memory that they share. Ranks are spread over
// the memory nodes, since that is where tensor parallelism puts them.
func sums(nodes []device.Node, cores []device.Core, o Options) (all []Sum, err error) {
	cpus := spread(nodes, cores)
	for n := 2; n <= min(len(cpus), 8); n *= 2 {
		for _, size := range o.Vectors {
			s := Sum{Ranks: n, Bytes: int64(4 * size)}
			if s.Seconds, err = reduced(cpus[:n], size, o); err != nil {
				return all, err
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// spread takes a core of each node in turns.
func spread(nodes []device.Node, cores []device.Core) (cpus []int) {
	var lists [][]int
	longest := 0
	for _, n := range nodes {
		lists = append(lists, firsts(cores, n.ID))
		longest = max(longest, len(lists[len(lists)-1]))
	}
	for i := range longest {
		for _, l := range lists {
			if i < len(l) {
				cpus = append(cpus, l[i])
			}
		}
	}
	return cpus
}

// reduced is the seconds of one sum: each rank adds its share of all vectors, and then
// takes the others' shares.
func reduced(cpus []int, size int, o Options) (float64, error) {
	n := len(cpus)
	vectors, shares := make([][]float32, n), make([]float32, size)
	var gate barrier
	var took time.Duration
	err := together(cpus, func(rank int) error {
		own := make([]float32, size) // touched by its own thread first, so of its own node
		for i := range own {
			own[i] = float32(rank + 1)
		}
		vectors[rank] = own
		gate.wait(n)
		low, high := rank*size/n, (rank+1)*size/n
		var began time.Time
		for round := range o.Sums + 1 {
			if round == 1 { // the first counts for nothing
				gate.wait(n)
				began = time.Now()
			}
			for i := low; i < high; i++ {
				var v float32
				for _, other := range vectors {
					v += other[i]
				}
				shares[i] = v / float32(n)
			}
			gate.wait(n)
			copy(own, shares)
			gate.wait(n)
		}
		if rank == 0 {
			took = time.Since(began)
		}
		if want := float32(n+1) / 2; own[0] != want || own[size-1] != want { // the mean of 1, 2, … n
			return fmt.Errorf("the sum over %d threads is wrong: %v and %v, not %v", n, own[0], own[size-1], want)
		}
		return nil
	})
	return took.Seconds() / float64(o.Sums), err
}

// barrier is passed by all ranks together. They wait by looking, as the engine's threads
// do: a sleep would cost more than what is measured.
type barrier struct {
	came   atomic.Int64
	passed atomic.Int64
}

func (b *barrier) wait(n int) {
	turn := b.passed.Load()
	if b.came.Add(1) == int64(n) {
		b.came.Store(0)
		b.passed.Add(1)
		return
	}
	for b.passed.Load() == turn {
	}
}
