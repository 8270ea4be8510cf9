package lines

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// FuzzAccessLine: whatever a client names its model, a line is a line, as slog would
// write it.
func FuzzAccessLine(f *testing.F) {
	for _, s := range []string{"", "sim", "a b", "a=b", "\"", "\\", "\n level=ERROR", "Qwen/Qwen3-8B", "ü", "\u2028", "\xff", "\x7f", "\u00a0", "</script>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, asJSON := range []bool{false, true} {
			l := Begin(nil, asJSON, time.Now())
			l.Text("model", s)
			l.Number("status", 200)
			line := l.End()
			if bytes.IndexByte(line, '\n') != len(line)-1 {
				t.Fatalf("%q is not one line", line)
			}
			if asJSON {
				var m map[string]any
				if err := json.Unmarshal(line, &m); err != nil || m["model"] != string([]rune(s)) || m["status"] != 200. {
					t.Fatalf("%v: %q is %s", err, s, line)
				}
				continue
			}
			var want bytes.Buffer
			slog.New(slog.NewTextHandler(&want, nil)).Info("request", "model", s, "status", 200)
			if _, end, _ := strings.Cut(want.String(), " level="); !strings.HasSuffix(string(line), end) && !strings.ContainsRune(s, 0x7f) {
				t.Fatalf("got %s; slog has %s", line, end)
			}
		}
	})
}
