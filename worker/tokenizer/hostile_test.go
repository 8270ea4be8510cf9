package tokenizer

import (
	"fmt"
	"strings"
	"testing"
)

// small returns a byte-level tokenizer.json with parts of it replaced.
func small(replacements ...string) string {
	s := `{"added_tokens":[{"id":4,"content":"<s>","special":true}],"normalizer":null,` +
		`"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":true},"post_processor":null,"decoder":{"type":"ByteLevel"},` +
		`"model":{"type":"BPE","vocab":{"a":0,"b":1,"c":2,"ab":3},"merges":["a b"]}}`
	for i := 0; i < len(replacements); i += 2 {
		s = strings.Replace(s, replacements[i], replacements[i+1], 1)
	}
	return s
}

func TestLoadRefuses(t *testing.T) {
	if _, err := Load([]byte(small())); err != nil {
		t.Fatal(err)
	}
	f := func(want string, replacements ...string) {
		t.Helper()
		tok, err := Load([]byte(small(replacements...)))
		if err == nil {
			tok.Encode("abc <s>", EncodeOptions{AddSpecial: true})
			t.Errorf("%q is taken", replacements)
			return
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want an error with %q", replacements, err, want)
		}
	}
	f("merges[0]", `"a b"`, `"a z"`)
	f("merges[0]", `"a b"`, `"b a"`) // their product is no token
	f("merges[0]", `"a b"`, `"a b c"`)
	f("merges[0]", `"a b"`, `["a"]`)
	f("id 1 belongs to both", `"ab":3`, `"ab":1`)
	f("id -1", `"ab":3`, `"ab":-1`)
	f("id 2000000000", `"ab":3`, `"ab":2000000000`)
	f("cannot read", `"ab":3`, `"ab":99999999999`)
	f("cannot read", `"ab":3`, `"ab":1.5`)
	f("added_tokens[0]", `"id":4`, `"id":-4`)
	f("added_tokens[0]", `"id":4`, `"id":123456789`)
	f("belongs to both", `"id":4`, `"id":0`)
	f("at most 65536", `"<s>"`, `"`+strings.Repeat("x", 1<<20)+`"`)
	f("model is missing", `"model":{`, `"other":{`)
	f("1 to", `{"a":0,"b":1,"c":2,"ab":3}`, `{}`)
	f("the model is Magic", `"type":"BPE"`, `"type":"Magic"`)
	f(`"Magic" is not supported`, `{"type":"ByteLevel"}`, `{"type":"Magic"}`)
	f(`"Magic" is not supported`, `"normalizer":null`, `"normalizer":{"type":"Magic"}`)
	f("draws lots", `"type":"BPE"`, `"type":"BPE","dropout":0.1`)
	f("unk_token", `"type":"BPE"`, `"type":"BPE","unk_token":"?"`)
	f("nested deeper", `"normalizer":null`, `"normalizer":`+strings.Repeat(`{"type":"Sequence","normalizers":[`, 60)+strings.Repeat("]}", 60))
	f("not base64", `"normalizer":null`, `"normalizer":{"type":"Precompiled","precompiled_charsmap":"!!"}`)
	f("cut short", `"normalizer":null`, `"normalizer":{"type":"Precompiled","precompiled_charsmap":"AAA="}`)
	f("in all", `"normalizer":null`, `"normalizer":{"type":"Precompiled","precompiled_charsmap":"/////wAA"}`)
	f("empty text", `"normalizer":null`, `"normalizer":{"type":"Replace","pattern":{"Regex":"(a+)*"},"content":""}`)
	f("pattern", `"normalizer":null`, `"normalizer":{"type":"Replace","pattern":{"Regex":"("},"content":""}`)
	f("neither", `"normalizer":null`, `"normalizer":{"type":"Replace","pattern":{},"content":""}`)
	f("is not one of", `"post_processor":null`, `"post_processor":{"type":"BertProcessing","sep":["x",99],"cls":["y",1]}`)
	f("special_tokens", `"post_processor":null`, `"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"q","type_id":0}}],"pair":[]}`)
	f("BPE model only", `"type":"BPE"`, `"type":"WordLevel","unk_token":"a"`)
	for _, whole := range []string{"", "null", "[]", "{", "\x00", `{"model":null}`, `{"model":[]}`, strings.Repeat("[", 1<<20)} {
		if _, err := Load([]byte(whole)); err == nil {
			t.Errorf("%q is taken", clip(whole))
		}
	}
}

func TestLoadRefusesUnigram(t *testing.T) {
	base := `{"decoder":{"type":"Metaspace","replacement":"▁"},"model":{"type":"Unigram","unk_id":0,"vocab":[["u",0],["a",-1],["b",-2]]}}`
	f := func(old, by string) {
		t.Helper()
		if _, err := Load([]byte(strings.Replace(base, old, by, 1))); (err == nil) != (old == by) {
			t.Errorf("%s for %s: error is %v", by, old, err)
		}
	}
	f("", "")
	f(`"unk_id":0`, `"unk_id":3`)
	f(`"unk_id":0`, `"unk_id":null`)
	f(`["b",-2]`, `["a",-2]`)
	f(`["b",-2]`, `["b"]`)
	f(`["b",-2]`, `["b",1,2]`)
	f(`["b",-2]`, `["b","x"]`)
	f(`"replacement":"▁"`, `"replacement":""`)
}

// TestLongPieces encodes texts that are one piece each: what takes the square
// of their length would not end in time.
func TestLongPieces(t *testing.T) {
	const n = 1 << 17
	for _, name := range []string{"llama3", "llama2", "xlmr", "bert", "odd", "gemma"} {
		tok := loadGzip(t, "testdata/"+name+".json.gz")
		for _, unit := range []string{"a", " ", "1", "\u0301", "ab", "!", "\n", "你"} {
			text := strings.Repeat(unit, n/len(unit))
			ids := tok.Encode(text, EncodeOptions{})
			if len(ids) == 0 && name != "bert" && name != "xlmr" {
				t.Errorf("%s: %d times %q gives no token", name, n, unit)
			}
		}
	}
}

func TestMergesLongAndShortAgree(t *testing.T) {
	tok := loadGzip(t, "testdata/gpt2.json.gz")
	b := tok.model.(*bpe)
	sc := &scratch{}
	for i := range 2000 {
		r := splitMix64(i)
		n := 1 + int(r.next()%60)
		short := make([]int32, n)
		for j := range short {
			short[j] = b.bytes["the engine "[r.next()%11]]
		}
		long := append([]int32(nil), short...)
		short = short[:b.merges.mergeShort(short, sc)]
		long = long[:b.merges.mergeLong(long, sc)]
		if fmt.Sprint(short) != fmt.Sprint(long) {
			t.Fatalf("seed %d: %v and %v", i, short, long)
		}
	}
}
