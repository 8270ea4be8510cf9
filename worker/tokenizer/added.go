package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// addedToken is an entry of added_tokens in tokenizer.json.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// addedTokens are the tokens cut out of a text: those looked for in the raw
// text, and those looked for after normalisation.
type addedTokens struct {
	raw, normalized tokenTrie
}

// tokenTrie finds the longest token that begins at a place of a text.
type tokenTrie struct {
	nodes  []trieNode
	tokens []addedToken
	first  [256]bool // bytes with which a token begins
	only   int       // the one such byte; -1: none or several
}

type trieNode struct {
	next  map[byte]int32
	token int32 // index in tokens, -1: none ends here
}

func newTokenTrie() tokenTrie {
	return tokenTrie{nodes: []trieNode{{token: -1}}, only: -1}
}

// add enters a token, to be found where text stands.
func (t *tokenTrie) add(text string, token addedToken) {
	if text == "" {
		return // it would match everywhere; the library ignores it, too
	}
	at := int32(0)
	for i := range len(text) {
		node := &t.nodes[at]
		next, ok := node.next[text[i]]
		if !ok {
			next = int32(len(t.nodes))
			if node.next == nil {
				node.next = map[byte]int32{}
			}
			node.next[text[i]] = next
			t.nodes = append(t.nodes, trieNode{token: -1})
		}
		at = next
	}
	t.nodes[at].token = int32(len(t.tokens))
	t.tokens = append(t.tokens, token)
	if !t.first[text[0]] {
		t.first[text[0]] = true
		t.only = -1
		if len(t.nodes[0].next) == 1 {
			t.only = int(text[0])
		}
	}
}

// longest returns the longest token at s[i] and its end, -1 if there is none.
func (t *tokenTrie) longest(s string, i int) (token int32, end int) {
	token = -1
	at := int32(0)
	for i < len(s) {
		next, ok := t.nodes[at].next[s[i]]
		if !ok {
			break
		}
		at = next
		i++
		if n := t.nodes[at].token; n >= 0 {
			token, end = n, i
		}
	}
	return token, end
}

// candidate returns the first place from s[i] at which a token may begin.
func (t *tokenTrie) candidate(s string, i int) int {
	if t.only >= 0 {
		if n := strings.IndexByte(s[i:], byte(t.only)); n >= 0 {
			return i + n
		}
		return len(s)
	}
	for i < len(s) && !t.first[s[i]] {
		i++
	}
	return i
}

// split calls token for each token found in s and text for what lies
// between, in order. Special tokens that touch a closed range are passed
// over, as the library does with encode_special_tokens.
func (t *tokenTrie) split(s string, closed []span, token func(int32), text func(s string, from int)) {
	if len(t.tokens) == 0 {
		text(s, 0)
		return
	}
	done := 0 // s[:done] was handed out
	for i := t.candidate(s, 0); i < len(s); i = t.candidate(s, i) {
		n, end := t.longest(s, i)
		if n < 0 {
			i++
			continue
		}
		from := i
		i = end
		tok := &t.tokens[n]
		if tok.Special && touches(&closed, from, end) || tok.SingleWord && insideWord(s, from, end) {
			continue
		}
		if tok.LStrip {
			from = max(len(strings.TrimRightFunc(s[:from], isSpace)), done)
		}
		if tok.RStrip {
			end = len(s) - len(strings.TrimLeftFunc(s[end:], isSpace))
		}
		if from < done {
			continue
		}
		if done < from {
			text(s[done:from], done)
		}
		token(tok.ID)
		done = end
		i = end
	}
	if done < len(s) || len(s) == 0 {
		text(s[done:], done)
	}
}

// touches reports whether [from, to) overlaps a closed range. It drops the
// ranges that lie before, since the caller goes forward.
func touches(closed *[]span, from, to int) bool {
	for len(*closed) > 0 && (*closed)[0].to <= from {
		*closed = (*closed)[1:]
	}
	return len(*closed) > 0 && (*closed)[0].from < to
}

func insideWord(s string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:from])
	after, _ := utf8.DecodeRuneInString(s[to:])
	return from > 0 && isWord(before) || to < len(s) && isWord(after)
}

func isSpace(r rune) bool { return classes.of(r)&space != 0 }
func isWord(r rune) bool  { return classes.of(r)&word != 0 }

// newAddedTokens sorts the added tokens of a file into the two tries.
func newAddedTokens(tokens []addedToken, n normalizer) (addedTokens, error) {
	a := addedTokens{raw: newTokenTrie(), normalized: newTokenTrie()}
	for i, tok := range tokens {
		if len(tok.Content) > maxToken {
			return a, fmt.Errorf("tokenizer.json: added_tokens[%d]: content has %d bytes; at most %d are allowed", i, len(tok.Content), maxToken)
		}
		if !utf8.ValidString(tok.Content) {
			return a, fmt.Errorf("tokenizer.json: added_tokens[%d]: content is not UTF-8", i)
		}
		text := tok.Content
		if !tok.Normalized {
			a.raw.add(text, tok)
			continue
		}
		if n != nil {
			text = n.normalize(text)
		}
		a.normalized.add(text, tok)
	}
	return a, nil
}
