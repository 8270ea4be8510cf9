package kv

import (
	"crypto/sha256"
	"encoding/binary"
)

// Key makes the digests of one process. Who does not know it cannot prepare two
// prompts with the same one; who knows it would have to break SHA-256.
type Key [16]byte

// digest stands for a prefix of whole blocks, with its salt and adapter: the first
// half of a SHA-256. A faster hash that is not made against attackers would let a
// client put the keys of its prompt in the place of another's.
type digest [16]byte

// match returns how many blocks of tokens every group still has. The last
// token is never covered.
func (p *Cache) match(t *Table, tokens []int32) int {
	most := max(0, len(tokens)-1) / p.blockTokens
	p.extendChain(t, tokens, most)
	blocks := most
	for i := range p.groups {
		if g := &p.groups[i]; g.Window == 0 {
			blocks = p.matchFull(g, t, tokens, blocks)
		}
	}
	// A window group needs only what the next query sees, so its longest match
	// is searched from the end. Shortening for one group may spoil another's:
	// repeat until all agree.
	for again := true; again; {
		again = false
		for i := range p.groups {
			g := &p.groups[i]
			if g.Window == 0 {
				continue
			}
			if n := p.matchWindow(g, t, tokens, blocks); n < blocks {
				blocks, again = n, true
			}
		}
	}
	return blocks
}

func (p *Cache) matchFull(g *group, t *Table, tokens []int32, most int) int {
	for b := range most {
		if !g.find(t.chain[b], p.parent(t, b), p.block(tokens, b)) {
			return b
		}
	}
	return most
}

func (p *Cache) matchWindow(g *group, t *Table, tokens []int32, most int) int {
	for blocks := most; blocks > 0; {
		first := firstSeen(blocks*p.blockTokens, g.Window) / p.blockTokens
		missing := -1
		for b := blocks - 1; b >= first; b-- {
			if !g.find(t.chain[b], p.parent(t, b), p.block(tokens, b)) {
				missing = b
				break
			}
		}
		if missing < 0 {
			return blocks
		}
		blocks = missing
	}
	return 0
}

func (p *Cache) block(tokens []int32, b int) []int32 {
	return tokens[b*p.blockTokens : (b+1)*p.blockTokens]
}

// parent is the digest before block b of t.
func (p *Cache) parent(t *Table, b int) digest {
	if b > 0 {
		return t.chain[b-1]
	}
	return p.root(t)
}

// root is the digest of a prefix without tokens.
func (p *Cache) root(t *Table) digest {
	buf := append([]byte("root"), p.key[:]...)
	buf = binary.LittleEndian.AppendUint64(buf, t.Adapter)
	return sum(append(buf, t.Salt...))
}

func sum(b []byte) digest {
	all := sha256.Sum256(b)
	return digest(all[:len(digest{})])
}

// extendChain computes the digests of the first blocks full blocks.
func (p *Cache) extendChain(t *Table, tokens []int32, blocks int) {
	buf := make([]byte, 0, 64+4*p.blockTokens)
	for b := len(t.chain); b < blocks; b++ {
		parent := p.parent(t, b)
		buf = append(append(append(buf[:0], "next"...), p.key[:]...), parent[:]...)
		for _, id := range p.block(tokens, b) {
			buf = binary.LittleEndian.AppendUint32(buf, uint32(id))
		}
		buf = t.appendMedia(buf, b*p.blockTokens, (b+1)*p.blockTokens)
		t.chain = append(t.chain, sum(buf))
	}
}

// appendMedia adds the items that tokens from first to end stand for, and where
// they begin.
func (t *Table) appendMedia(buf []byte, first, end int) []byte {
	for _, m := range t.Media {
		if m.First < end && m.First+m.Count > first {
			buf = binary.LittleEndian.AppendUint64(buf, uint64(int64(m.First-first)))
			buf = append(buf, m.Digest[:]...)
		}
	}
	return buf
}
