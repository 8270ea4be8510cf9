package wire

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestControl finds a control character wherever it stands, and nothing else.
func TestControl(t *testing.T) {
	for n := range 300 {
		b := bytes.Repeat([]byte("~"), n)
		for i := range b {
			b[i] = byte(0x20 + (i*37)%0xe0)
		}
		if got := control(b); got != -1 {
			t.Fatalf("%d plain bytes: got %d", n, got)
		}
		for at := range b {
			was := b[at]
			b[at] = byte(at % 0x20)
			if got := control(b); got != at {
				t.Fatalf("at %d of %d: got %d", at, n, got)
			}
			b[at] = was
		}
	}
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
