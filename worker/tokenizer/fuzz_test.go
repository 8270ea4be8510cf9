package tokenizer

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// FuzzRoundTrip: what is encoded decodes to the same text, streamed or not,
// and no piece of a stream holds half a character.
func FuzzRoundTrip(f *testing.F) {
	for _, s := range []string{"", "a", "Hello, world", "<|im_start|>x<think>", "你好🚂\u200d", "\xff\xc3 e\u0301", "\r\n\t  'LL 1234"} {
		f.Add(s)
	}
	plain := loadGzip(f, "testdata/llama3.json.gz")
	composed := loadGzip(f, "testdata/qwen2.json.gz")
	pieces := loadGzip(f, "testdata/gemma.json.gz")
	f.Fuzz(func(t *testing.T, s string) {
		valid := validUTF8(s)
		check := func(tok *Tokenizer, o EncodeOptions, want string) {
			ids := tok.Encode(s, o)
			if got := tok.Decode(ids, false); got != want {
				t.Errorf("%q decodes to %q", want, got)
			}
			d := tok.NewDecoder(false)
			var b strings.Builder
			for _, id := range ids {
				part := d.Add(id)
				if !utf8.ValidString(part) {
					t.Errorf("%q: a piece is %q", s, part)
				}
				b.WriteString(part)
			}
			if got := b.String() + d.Flush(); got != want {
				t.Errorf("%q streams as %q", want, got)
			}
		}
		check(plain, EncodeOptions{}, valid)
		check(plain, EncodeOptions{ParseSpecial: true}, valid)
		check(composed, EncodeOptions{}, norm.NFC.String(valid))
		if !strings.Contains(valid, "▁") && !strings.Contains(valid, "<0x") {
			check(pieces, EncodeOptions{}, valid)
		}
	})
}

// FuzzLoad: a tokenizer.json either is refused or works without a panic.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(small()), "abc <s> ba")
	f.Add([]byte(small(`"normalizer":null`, `"normalizer":{"type":"Replace","pattern":{"Regex":"(a|b)+c"},"content":"x"}`)), "abc")
	f.Add([]byte(`{"decoder":{"type":"Metaspace","replacement":"▁"},"model":{"type":"Unigram","unk_id":0,"vocab":[["u",0],["a",-1],["b",-2]]}}`), "ab u")
	f.Add([]byte(`{"model":{"type":"WordPiece","unk_token":"u","vocab":{"u":0,"a":1,"##b":2}},"pre_tokenizer":{"type":"BertPreTokenizer"},"decoder":{"type":"WordPiece","prefix":"##","cleanup":true}}`), "ab!")
	f.Add([]byte(small(`"use_regex":true}`, `"use_regex":false}`, `"type":"BPE"`, `"type":"BPE","ignore_merges":true`)), "ab!")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		tok, err := Load(data)
		if err != nil {
			return
		}
		ids := tok.Encode(text, EncodeOptions{AddSpecial: true, ParseSpecial: true})
		for _, id := range ids {
			if id < 0 || int(id) >= tok.Size() {
				t.Fatalf("id %d of %d", id, tok.Size())
			}
		}
		tok.Decode(ids, true)
		stream(tok, ids, false)
		tok.EncodePair(text, "b")
	})
}
