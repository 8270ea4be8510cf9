package kv

import "fmt"

// Check compares the account with the tables that are said to be all there
// are, and returns the first thing that is wrong. It is slow: tests call it
// after every step.
func (p *Cache) Check(tables []*Table) error {
	for i := range p.groups {
		g := &p.groups[i]
		refs := make([]int32, g.Blocks)
		for _, t := range tables {
			if i >= len(t.Groups) {
				continue
			}
			for _, id := range t.Groups[i] {
				if id >= 0 {
					refs[id]++
				}
			}
		}
		if err := g.check(refs); err != nil {
			return fmt.Errorf("group %d: %w", i, err)
		}
	}
	return nil
}

func (g *group) check(want []int32) error {
	used := 0
	for id, n := range want {
		if g.refs[id] != n {
			return fmt.Errorf("block %d has %d references; the tables hold it %d times", id, g.refs[id], n)
		}
		if n > 0 {
			used++
		}
		if g.hashed[id] && g.index[g.hash[id]] != int32(id) {
			return fmt.Errorf("block %d has a hash under which it is not found", id)
		}
		if n > 1 && g.State {
			return fmt.Errorf("state block %d is shared", id)
		}
	}
	listed, idle, last := 0, 0, int32(-1)
	for id := g.head; id >= 0; id = g.next[id] {
		if g.refs[id] != 0 || g.prev[id] != last {
			return fmt.Errorf("block %d stands in the free list with %d references, after %d", id, g.refs[id], g.prev[id])
		}
		if g.hashed[id] {
			idle++
		}
		last = id
		listed++
	}
	switch {
	case listed != g.free || g.tail != last:
		return fmt.Errorf("%d blocks in the free list, which says %d", listed, g.free)
	case used+listed != g.Blocks:
		return fmt.Errorf("%d used + %d free ≠ %d", used, listed, g.Blocks)
	case idle != g.idleHashed:
		return fmt.Errorf("%d idle blocks with a prefix, account says %d", idle, g.idleHashed)
	}
	hashed := 0
	for id := range g.hashed {
		if g.hashed[id] {
			hashed++
		}
	}
	if hashed != len(g.index) {
		return fmt.Errorf("%d blocks with a hash, %d in the index", hashed, len(g.index))
	}
	return nil
}
