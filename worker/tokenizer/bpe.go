package tokenizer

import "unicode/utf8"

// bpe is byte-pair encoding. A piece begins as symbols of one character (or
// of one byte), and the pair whose merge was learned first is merged, the
// leftmost of equals, until none is left.
type bpe struct {
	vocab  map[string]int32 // by bytes for a byte-level vocabulary, else by text
	merges *mergeTable
	cache  wordCache

	byteLevel    bool
	bytes        [256]int32 // id of each byte (byte-level, or <0x..>), -1: none
	byteFallback bool
	whole        bool // a piece that is itself a token is that token (ignore_merges)
	unknown      int32
	hasUnknown   bool
	fuseUnknown  bool
	prefix       string // what a symbol that does not begin the piece carries, as ##
	suffix       string // what the last symbol of a piece carries, as </w>
}

// cacheable is the longest piece whose tokens are remembered.
const cacheable = 64

func (b *bpe) encode(ids []int32, piece string, sc *scratch) []int32 {
	if len(piece) > cacheable {
		return b.merge(ids, piece, sc)
	}
	slot, found := b.cache.get(piece)
	if found != nil {
		return append(ids, found...)
	}
	from := len(ids)
	ids = b.merge(ids, piece, sc)
	slot.put(piece, ids[from:])
	return ids
}

func (b *bpe) merge(ids []int32, piece string, sc *scratch) []int32 {
	if b.whole {
		if id, ok := b.vocab[piece]; ok {
			return append(ids, id)
		}
	}
	from := len(ids)
	if b.byteLevel {
		for i := range len(piece) {
			if id := b.bytes[piece[i]]; id >= 0 {
				ids = append(ids, id)
			} else if b.hasUnknown {
				ids = append(ids, b.unknown)
			}
		}
	} else {
		ids = b.characters(ids, piece)
	}
	if len(ids)-from > shortPiece {
		return ids[:from+b.merges.mergeLong(ids[from:], sc)]
	}
	return ids[:from+b.merges.mergeShort(ids[from:], sc)]
}

// characters appends the symbols of a vocabulary of characters.
func (b *bpe) characters(ids []int32, piece string) []int32 {
	unknown := false // the last symbol was unknown
	for i, r := range piece {
		end := i + utf8.RuneLen(r)
		s := piece[i:end]
		if i > 0 {
			s = b.prefix + s
		}
		if end == len(piece) {
			s += b.suffix
		}
		if id, ok := b.vocab[s]; ok {
			ids = append(ids, id)
			unknown = false
			continue
		}
		if b.byteFallback {
			var ok bool
			if ids, ok = b.fallback(ids, s); ok {
				unknown = false
				continue
			}
		}
		if b.hasUnknown && !(unknown && b.fuseUnknown) {
			ids = append(ids, b.unknown)
		}
		unknown = true
	}
	return ids
}

// fallback appends the byte tokens of s, if there is one for each byte.
func (b *bpe) fallback(ids []int32, s string) ([]int32, bool) {
	for i := range len(s) {
		if b.bytes[s[i]] < 0 {
			return ids, false
		}
	}
	for i := range len(s) {
		ids = append(ids, b.bytes[s[i]])
	}
	return ids, true
}
