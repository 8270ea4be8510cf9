package tokenizer

import "unicode/utf8"

// unigram cuts a piece into the tokens whose scores have the greatest sum
// (SentencePiece's model).
type unigram struct {
	trie         *byteTrie
	scores       []float64 // by id
	ids          map[string]int32
	cache        wordCache
	worst        float64 // the score of an unknown character
	unknown      int32
	hasUnknown   bool
	byteFallback bool
	bytes        [256]int32
}

// unknownPenalty is how much worse than the worst token an unknown character
// is.
const unknownPenalty = 10

func (u *unigram) encode(ids []int32, piece string, sc *scratch) []int32 {
	if len(piece) > cacheable {
		return u.search(ids, piece, sc)
	}
	slot, found := u.cache.get(piece)
	if found != nil {
		return append(ids, found...)
	}
	from := len(ids)
	ids = u.search(ids, piece, sc)
	slot.put(piece, ids[from:])
	return ids
}

// search finds the best way from the beginning of s to each of its
// characters, and follows the one to the end back.
func (u *unigram) search(ids []int32, s string, sc *scratch) []int32 {
	if cap(sc.lattice) <= len(s) {
		sc.lattice = make([]latticeNode, len(s)+1)
	}
	best := sc.lattice[:len(s)+1]
	for i := range best {
		best[i] = latticeNode{from: -1}
	}
	for i := 0; i < len(s); {
		till := best[i].score
		_, size := utf8.DecodeRuneInString(s[i:])
		single := false
		reach := func(to int, id int32, score float64) {
			if n := &best[to]; n.from < 0 || score > n.score {
				*n = latticeNode{int32(i), id, score}
			}
		}
		node := int32(0)
		for j := i; j < len(s); j++ {
			var ok bool
			if node, ok = u.trie.child(node, s[j]); !ok {
				break
			}
			if id := u.trie.token[node]; id >= 0 {
				reach(j+1, id, u.scores[id]+till)
				single = single || j+1 == i+size
			}
		}
		if !single {
			reach(i+size, u.unknown, u.worst+till)
		}
		i += size
	}
	return u.follow(ids, s, best, sc)
}

// follow appends the tokens of the best way. Unknown characters in a row are
// one.
func (u *unigram) follow(ids []int32, s string, best []latticeNode, sc *scratch) []int32 {
	sc.ids = sc.ids[:0]
	for at := int32(len(s)); at > 0; {
		n := best[at]
		from := n.from
		if u.hasUnknown && n.id == u.unknown {
			for from > 0 && best[from].id == u.unknown {
				from = best[from].from
			}
			sc.ids = u.unknownReversed(sc.ids, s[from:at])
		} else {
			sc.ids = append(sc.ids, n.id)
		}
		at = from
	}
	for i := len(sc.ids) - 1; i >= 0; i-- {
		ids = append(ids, sc.ids[i])
	}
	return ids
}

// unknownReversed appends the tokens of unknown text, last first.
func (u *unigram) unknownReversed(ids []int32, s string) []int32 {
	if id, ok := u.ids[s]; ok {
		return append(ids, id)
	}
	if !u.byteFallback {
		return append(ids, u.unknown)
	}
	for i := range len(s) {
		if u.bytes[s[i]] < 0 {
			return append(ids, u.unknown)
		}
	}
	for i := len(s) - 1; i >= 0; i-- {
		ids = append(ids, u.bytes[s[i]])
	}
	return ids
}
