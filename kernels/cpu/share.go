package cpu

import (
	"cmp"
	"slices"
)

// byNode orders processors so that those of one memory node stand side by side,
// as their threads' shares of a matrix then do. nodes has the node of each; nil
// is one node. several says whether there is more than one.
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
	for _, n := range tiles {
		all += n
	}
	from, to := part(all, thread, threads)
	for i, n := range tiles {
		first, last := max(from, 0), min(to, n)
		if apart {
			first, last = part(n, thread, threads)
		}
		if first < last {
			visit(i, first, last)
		}
		from, to = from-n, to-n
	}
}
