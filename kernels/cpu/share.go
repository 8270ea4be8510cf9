package cpu

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// byNode orders processors so that those of one memory node stand side by side,
// as their threads' shares of a matrix then do. nodes has the node of each; nil
// is one node. several reports whether there is more than one.
func byNode(cpus, nodes []int) (ordered []int, several bool) {
	if len(nodes) != len(cpus) || len(cpus) == 0 {
		return cpus, false
	}
	places := make([]int, len(cpus))
	for i := range places {
		places[i] = i
		several = several || nodes[i] != nodes[0]
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(nodes[a], nodes[b]) })
	for _, i := range places {
		ordered = append(ordered, cpus[i])
	}
	return ordered, several
}

// part is a thread's share of the tiles of one matrix.
func part(tiles, thread, threads int) (first, last int) {
	return tiles * thread / threads, tiles * (thread + 1) / threads
}

// shares visits a thread's share of matrices whose outputs stand side by side.
// Their tiles are shared out as one stretch, so that no thread has more than one
// tile above another. Apart, each matrix is shared out by itself, as it was when
// the threads packed it: then every thread reads memory of its own node.
func shares(tiles []int, thread, threads int, apart bool, visit func(matrix, first, last int)) {
	all := 0
	for i, n := range tiles {
		all += n
		if first, last := part(n, thread, threads); apart && first < last {
			visit(i, first, last)
		}
	}
	if !apart {
		first, last := part(all, thread, threads)
		within(tiles, first, last, visit)
	}
}

// stock is the tiles of all linears of a step, which threads take as they get
// to them: each those of its own stretch in their order, and then what others
// have left. A thread that other processes hold up has less to do then, and the
// rest need not wait for it so long that they fall asleep.
type stock struct {
	sizes []int // by linear: all its tiles
	next  [][]atomic.Int32
}

// thieves is how many of the next threads' stretches a thread looks at: with
// many threads, looking takes longer than it gains.
const thieves = 4

// add puts a linear into stock and returns its number.
func (s *stock) add(tiles int) int {
	s.sizes = append(s.sizes, tiles)
	return len(s.sizes) - 1
}

// setAside makes the counters, those of one thread side by side.
func (s *stock) setAside(threads int) {
	s.next = make([][]atomic.Int32, threads)
	const apart = 128 / 4 // bytes between what two threads write
	for i := range s.next {
		s.next[i] = make([]atomic.Int32, len(s.sizes)+apart)[:len(s.sizes)]
		for k, n := range s.sizes {
			s.next[i][k].Store(int32(n))
		}
	}
}

// refill gives a thread its stretches for a step. Those of the step before are
// empty, so that nobody takes of them what this thread has not come to yet.
func (s *stock) refill(thread, threads int) {
	for k, n := range s.sizes {
		first, _ := part(n, thread, threads)
		s.next[thread][k].Store(int32(first))
	}
}

// take visits tiles of a linear until the thread's own stretch and those of the
// next threads are done: half of what is left of one at a time, a multiple of
// least. So few takes do, and the last ones are small.
func (s *stock) take(linear, least, thread, threads int, visit func(first, last int)) {
	for k := range min(threads, 1+thieves) {
		owner := (thread + k) % threads
		_, end := part(s.sizes[linear], owner, threads)
		for next := &s.next[owner][linear]; ; {
			at := next.Load()
			left := end - int(at)
			if left <= 0 {
				break
			}
			n := min(left, max(1, left/2/least)*least)
			if next.CompareAndSwap(at, at+int32(n)) {
				visit(int(at), int(at)+n)
			}
		}
	}
}

// within visits the matrices that tiles first to last of all are of.
func within(tiles []int, first, last int, visit func(matrix, first, last int)) {
	for i, n := range tiles {
		if a, b := max(first, 0), min(last, n); a < b {
			visit(i, a, b)
		}
		first, last = first-n, last-n
	}
}
