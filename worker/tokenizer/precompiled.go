package tokenizer

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/apparentlymart/go-textseg/v15/textseg"
)

// precompiled is SentencePiece's normalisation: a table from texts to texts,
// as a double array of bytes (darts-clone) and the results in one block.
type precompiled struct {
	trie    []uint32
	results string
}

// newPrecompiled reads the table as it stands in a file.
func newPrecompiled(encoded string) (*precompiled, error) {
	blob, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("precompiled_charsmap is not base64: %w", err)
	}
	if len(blob) < 4 {
		return nil, errors.New("precompiled_charsmap is cut short")
	}
	n := binary.LittleEndian.Uint32(blob)
	if n%4 != 0 || uint64(n) > uint64(len(blob)-4) {
		return nil, fmt.Errorf("precompiled_charsmap says that its table has %d bytes; it has %d in all", n, len(blob))
	}
	p := &precompiled{trie: make([]uint32, n/4), results: string(blob[4+n:])}
	for i := range p.trie {
		p.trie[i] = binary.LittleEndian.Uint32(blob[4+4*i:])
	}
	return p, nil
}

// lookup returns what a text is replaced by: the result of its shortest
// beginning that is in the table, as the library does.
func (p *precompiled) lookup(s string) (string, bool) {
	unit := func(i uint32) uint32 {
		if int(i) >= len(p.trie) {
			return 0
		}
		return p.trie[i]
	}
	offset := func(u uint32) uint32 { return (u >> 10) << ((u & (1 << 9)) >> 6) }
	pos := offset(unit(0))
	for i := range len(s) {
		c := uint32(s[i])
		if c == 0 {
			return "", false
		}
		pos ^= c
		u := unit(pos)
		if u&(1<<31|0xFF) != c {
			return "", false
		}
		pos ^= offset(u)
		if u>>8&1 == 1 {
			return p.result(unit(pos) & (1<<31 - 1))
		}
	}
	return "", false
}

// result returns the text at an offset of the block, up to its zero byte.
func (p *precompiled) result(at uint32) (string, bool) {
	if int(at) > len(p.results) {
		return "", false
	}
	s, _, _ := strings.Cut(p.results[at:], "\x00")
	return s, true
}

// normalize replaces short grapheme clusters as a whole and others character
// by character.
func (p *precompiled) normalize(s string) string {
	var b strings.Builder
	rest := []byte(s)
	for len(rest) > 0 {
		n, cluster, err := textseg.ScanGraphemeClusters(rest, true)
		if err != nil || n == 0 {
			b.Write(rest)
			break
		}
		rest = rest[n:]
		if len(cluster) < 6 {
			if by, ok := p.lookup(string(cluster)); ok {
				b.WriteString(by)
				continue
			}
		}
		for _, r := range string(cluster) {
			c := string(r)
			if by, ok := p.lookup(c); ok {
				c = by
			}
			b.WriteString(c)
		}
	}
	return validUTF8(b.String())
}
