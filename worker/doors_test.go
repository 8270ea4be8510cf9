package worker

import (
	"fmt"
	"slices"
	"testing"

	"roundhouse/worker/kv"
)

// TestChunksEnd finds the blocks that end a door's chunks, of one length and of
// growing ones.
func TestChunksEnd(t *testing.T) {
	f := func(tokens int, doubled []int, want ...int32) {
		t.Helper()
		d := newDoors()
		r := &request{Request: Request{Door: "d"}}
		for i, times := range doubled {
			r.Chunks = append(r.Chunks, fmt.Sprintf("%015x%x", i, times))
		}
		q := &Sequence{Prompt: tokens, Table: kv.Table{Groups: [][]int32{nil}}}
		for b := range int32(tokens / 16) {
			q.Table.Groups[0] = append(q.Table.Groups[0], b)
		}
		d.computed(r, q, 16)
		var got []int32
		for _, c := range r.Chunks {
			for b, ends := range d.chunks {
				if slices.Contains(ends, chunk{"d", c}) {
					got = append(got, b)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("chunks of 2^%v end in blocks %v; want %v", doubled, got, want)
		}
	}
	f(640, []int{0, 0, 0, 0}, 9, 19, 29, 39)
	f(640, []int{0, 0, 1, 2}, 4, 9, 19, 39)
	f(8, []int{0}) // not a whole block
}
