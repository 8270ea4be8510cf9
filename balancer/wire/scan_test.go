package wire

import (
	"fmt"
	"strings"
	"testing"
)

// TestRun finds the first byte that ends a run wherever it stands, in vector
// registers and without.
func TestRun(t *testing.T) {
	f := func(b []byte, bound byte) {
		t.Helper()
		want := 0
		for want < len(b) && b[want] >= 0x20 && b[want] != '"' && b[want] != '\\' && (bound == wide || b[want] < 0x80) {
			want++
		}
		if got, plain := run(b, bound), runGo(b, bound); got != want || plain != want {
			t.Fatalf("%q of bound %#x: %d, in plain Go %d; want %d", b, bound, got, plain, want)
		}
	}
	for n := 0; n < 200; n += 1 + n/40 {
		b := make([]byte, n)
		for i := range b {
			b[i] = "aZ~ \x7f!#[]"[i*7%9]
		}
		f(b, ascii)
		f(b, wide)
		for at := range b {
			was := b[at]
			for _, c := range []byte("\x00\x1f\x20!\"#[\\]\x7f\x80\xff") {
				b[at] = c
				f(b, ascii)
				f(b, wide)
			}
			b[at] = was
		}
	}
}

// TestText takes text in every script, wherever it stands, and nothing that is
// not UTF-8.
func TestText(t *testing.T) {
	f := func(text string, ok bool) {
		t.Helper()
		for _, pad := range []int{0, 5, 63, 64, 100} {
			for _, escape := range []string{"", `\n`} {
				body := `{"messages":[{"content":"` + strings.Repeat("p", pad) + escape + text + strings.Repeat("q", pad) + `"}],"` + text + `":1}`
				var p Peek
				if err := PeekBody([]byte(body), &p); (err == nil) != ok {
					t.Errorf("%q: %v", body, err)
				}
			}
		}
	}
	f("plain", true)
	f("h\u00e9", true)
	f("\u4e00\u4e8c\U0001f600", true)
	f("\xff", false)
	f("\u4e00\xc3", false)
	f("\xed\xa0\x80", false) // half of a pair
	f("\xc0\xaf", false)     // longer than need be
	f("\u00e9\x01", false)
}

// BenchmarkPeekBody scans prompts of several sizes and kinds.
func BenchmarkPeekBody(b *testing.B) {
	for _, text := range []struct{ name, of string }{{"plain", "word "}, {"code", `if (a) {\n\treturn \"b\";\n}`}, {"Chinese", "\u4e00\u4e8c"}} {
		for _, n := range []int{1000, 400_000} {
			body := fmt.Appendf(nil, `{"model":"m","stream":true,"messages":[{"role":"user","content":"%s"}]}`, strings.Repeat(text.of, n/len(text.of)))
			b.Run(fmt.Sprintf("%s/%d", text.name, n), func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				for b.Loop() {
					var p Peek
					if err := PeekBody(body, &p); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
