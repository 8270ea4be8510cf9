package lines

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strconv"
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

// TestTimes: a line's time and its seconds are as time and strconv write them.
func TestTimes(t *testing.T) {
	zones := []*time.Location{time.UTC, time.FixedZone("", 5*3600+1800), time.FixedZone("", -3600)}
	for i, ns := range []int64{0, 1, 999, 1000, 120_000_000, 999_999_999, 5e8} {
		for _, zone := range zones {
			at := time.Unix(1_700_000_000+int64(i), ns).In(zone)
			for asJSON, form := range map[bool]string{false: "time=2006-01-02T15:04:05.000Z07:00 ", true: `{"time":"2006-01-02T15:04:05.999999999Z07:00",`} {
				l := Begin(nil, asJSON, at)
				if got, want := string(l.End()), at.Format(form); !strings.HasPrefix(got, want) {
					t.Errorf("got %s; want %s", got, want)
				}
			}
		}
	}
	for _, ns := range []int64{0, 1, 499, 501, 1_000, 999_999_501, 1_000_000_000, 61_000_001_999, 1 << 52, -1_234_567} {
		l := Line{}
		l.Seconds("s", ns)
		if want := " s=" + strconv.FormatFloat(float64(ns)/1e9, 'f', 6, 64); string(l.b) != want {
			t.Errorf("%d: got %s; want %s", ns, l.b, want)
		}
	}
}
