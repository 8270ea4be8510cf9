package balancer

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"roundhouse/balancer/resume"
	"roundhouse/configs"
)

// FuzzAccessLine: whatever a client names its model, a line is a line, as slog would
// write it.
func FuzzAccessLine(f *testing.F) {
	for _, s := range []string{"", "sim", "a b", "a=b", "\"", "\\", "\n level=ERROR", "Qwen/Qwen3-8B", "ü", "\u2028", "\xff", "\x7f", "\u00a0", "</script>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, asJSON := range []bool{false, true} {
			l := beginLine(nil, asJSON, time.Now())
			l.text("model", s)
			l.number("status", 200)
			line := l.end()
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

// TestAccessLineAllocatesNothing: a line costs no garbage, whichever form it has.
func TestAccessLineAllocatesNothing(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		d := &Door{opts: Options{Access: io.Discard}}
		v := &view{}
		v.set.Log = configs.Log{Format: format}
		a := &asked{id: "one", path: "/v1/chat/completions", model: "Qwen/Qwen3-8B", pool: newPool("p"), key: &key{name: "team"}, wall: time.Now(), client: netip.MustParseAddr("2001:db8::1")}
		r := &record{worker: "p/1", status: 200, outcome: "ok", usage: resume.Usage{Known: true, Prompt: 10, Generated: 5}, first: 1e6, ended: 2e6}
		if n := testing.AllocsPerRun(200, func() { d.logAccess(v, a, r) }); n > 0.5 {
			t.Errorf("%s: %v allocations a line", format, n)
		}
	}
}
