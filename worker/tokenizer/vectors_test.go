package tokenizer

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
)

// loadGzip reads a tokenizer.json that is packed.
func loadGzip(t testing.TB, path string) *Tokenizer {
	t.Helper()
	tok, err := Load(readGzip(t, path))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func readGzip(t testing.TB, path string) []byte {
	t.Helper()
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
}

// splitMix64 is the generator of testdata/texts.py.
type splitMix64 uint64

func (s *splitMix64) next() uint64 {
	*s += 0x9E3779B97F4A7C15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// testStrings returns the 10,000 strings of testdata/texts.py, bytes that are
// not UTF-8 included.
func testStrings(t testing.TB) []string {
	t.Helper()
	var parts []string
	readJSON(t, "testdata/parts.json", &parts)
	for i, p := range parts {
		if h, ok := strings.CutPrefix(p, "hex:"); ok {
			raw, err := hex.DecodeString(h)
			if err != nil {
				t.Fatal(err)
			}
			parts[i] = string(raw)
		}
	}
	out := make([]string, 10_000)
	for i := range out {
		r := splitMix64(i)
		n := 1 + r.next()%24
		if i%100 == 99 {
			n *= 20
		}
		spaced := r.next()%2 == 0
		var b strings.Builder
		for range n {
			b.WriteString(parts[r.next()%uint64(len(parts))])
			if spaced && r.next()%2 == 0 {
				b.WriteByte(' ')
			}
		}
		out[i] = b.String()
	}
	return out
}

// TestVectors compares with the tokenizers library: testdata/vectors.py made
// one small tokenizer of each kind and the digests of what it answers.
func TestVectors(t *testing.T) {
	var digests map[string][]string
	readJSON(t, "testdata/digests.json", &digests)
	texts := testStrings(t)
	for name, want := range digests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tok := loadGzip(t, "testdata/"+name+".json.gz")
			per := len(texts) / len(want)
			bad := 0
			for i, w := range want {
				if raceDetector && i%10 != 0 {
					continue // races show in the tenth part, too
				}
				if got := answers(tok, texts[i*per:(i+1)*per]); got != w {
					if bad++; bad <= 3 {
						t.Errorf("strings %d to %d: digest %s; want %s (testdata/vectors.py show %s N prints one answer)", i*per, (i+1)*per-1, got, w, name)
					}
				}
			}
			if bad > 0 {
				t.Errorf("%d of %d digests differ", bad, len(want))
			}
		})
	}
}

// answers digests what testdata/vectors.py digests, and checks that streamed
// decoding gives the same text.
func answers(tok *Tokenizer, texts []string) string {
	h := sha256.New()
	number := func(n int) { _ = binary.Write(h, binary.LittleEndian, uint32(n)) }
	for _, s := range texts {
		plain := tok.Encode(s, EncodeOptions{ParseSpecial: true})
		full := tok.Encode(s, EncodeOptions{ParseSpecial: true, AddSpecial: true})
		for _, ids := range [][]int32{plain, full} {
			number(len(ids))
			_ = binary.Write(h, binary.LittleEndian, ids)
		}
		for _, skip := range []bool{true, false} {
			text := tok.Decode(full, skip)
			number(len(text))
			_, _ = h.Write([]byte(text))
			// Bytes that form no character are the one exception.
			if skip {
				continue
			}
			if got := stream(tok, full, skip); got != text && !strings.Contains(text, replacement) {
				return "stream: " + got + " whole: " + text
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// stream decodes token by token.
func stream(tok *Tokenizer, ids []int32, skip bool) string {
	d := tok.NewDecoder(skip)
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(d.Add(id))
	}
	return b.String() + d.Flush()
}
