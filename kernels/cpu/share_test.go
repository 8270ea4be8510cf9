package cpu

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// On every topology each tile is one thread's. On one node no thread has more
// than one tile above another; on several each thread has of every matrix what
// it packed, and the outputs of a node are one stretch.
func TestShares(t *testing.T) {
	f := func(nodes []int, tiles ...int) {
		t.Helper()
		cpus := make([]int, len(nodes))
		for i := range cpus {
			cpus[i] = 10 + i
		}
		ordered, several := byNode(cpus, nodes)
		threads := len(cpus)
		owner := make([][]int, len(tiles))
		for i, n := range tiles {
			owner[i] = slices.Repeat([]int{-1}, n)
		}
		least, most := 1<<30, 0
		for thread := range threads {
			count := 0
			shares(tiles, thread, threads, several, func(m, first, last int) {
				count += last - first
				if a, b := part(tiles[m], thread, threads); several && (a != first || b != last) {
					t.Errorf("%v, %v: thread %d packed tiles %d to %d of matrix %d and reads %d to %d", nodes, tiles, thread, a, b, m, first, last)
				}
				for i := first; i < last; i++ {
					if owner[m][i] >= 0 {
						t.Errorf("%v, %v: tile %d of matrix %d is of threads %d and %d", nodes, tiles, i, m, owner[m][i], thread)
					}
					owner[m][i] = thread
				}
			})
			least, most = min(least, count), max(most, count)
		}
		if limit := map[bool]int{false: 1, true: len(tiles)}[several]; most-least > limit {
			t.Errorf("%v, %v: threads have %d to %d tiles", nodes, tiles, least, most)
		}
		for m := range owner {
			var last []int // nodes, in the order of outputs
			for i, thread := range owner[m] {
				if thread < 0 {
					t.Fatalf("%v, %v: tile %d of matrix %d is nobody's", nodes, tiles, i, m)
				}
				node := nodes[ordered[thread]-10]
				if len(last) == 0 || last[len(last)-1] != node {
					last = append(last, node)
				}
			}
			if several && !slices.IsSorted(last) {
				t.Errorf("%v, %v: the outputs of matrix %d are of nodes %v", nodes, tiles, m, last)
			}
		}
	}
	for _, tiles := range [][]int{{1}, {7}, {128, 64, 64}, {192, 192}, {9497}, {3, 1, 1}} {
		f([]int{0}, tiles...)
		f([]int{0, 0}, tiles...)
		f([]int{0, 1}, tiles...)
		f([]int{0, 1, 0, 1, 0, 1}, tiles...)
		f([]int{1, 0, 0, 2, 2, 1, 0}, tiles...)
		f(slices.Repeat([]int{0, 0, 0, 1, 1, 1}, 8), tiles...)
	}
	if got, several := byNode([]int{3, 1, 2}, nil); fmt.Sprint(got) != "[3 1 2]" || several {
		t.Errorf("without nodes: %v, %v", got, several)
	}
}

// Threads that take tiles at once, some of which come late or not at all, have
// each tile once, step after step.
func TestStock(t *testing.T) {
	f := func(threads, late, least int, tiles ...int) {
		t.Helper()
		var s stock
		for _, n := range tiles {
			s.add(n)
		}
		s.setAside(threads)
		for step := range 3 {
			taken := make([][]atomic.Int32, len(tiles))
			for i, n := range tiles {
				taken[i] = make([]atomic.Int32, n)
			}
			work := func(thread int) {
				s.refill(thread, threads)
				for i := range tiles {
					s.take(i, least, thread, threads, func(first, last int) {
						for k := first; k < last; k++ {
							taken[i][k].Add(1)
						}
					})
				}
			}
			var wait sync.WaitGroup
			for thread := range threads - late {
				wait.Go(func() { work(thread) })
			}
			wait.Wait()
			for thread := threads - late; thread < threads; thread++ {
				work(thread)
			}
			for i := range taken {
				for k := range taken[i] {
					if n := taken[i][k].Load(); n != 1 {
						t.Fatalf("%d threads, %d late, step %d: tile %d of linear %d was taken %d times", threads, late, step, k, i, n)
					}
				}
			}
		}
	}
	for _, threads := range []int{1, 2, 3, 7, 16} {
		f(threads, 0, 1, 1, 7, 256, 384, 9497)
		f(threads, threads/2, 4, 1, 7, 256, 384, 9497)
	}
}
