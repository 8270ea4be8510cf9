package verdict

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func num(v float64) *float64 { return &v }
func count(v int) *int       { return &v }

// house is a pool of three workers that serve.
func house() Facts {
	f := Facts{At: noon, Doors: []Door{{ID: "a"}}, Pools: []Pool{{Name: "chat", Desired: 3, Ready: 3}}}
	for _, id := range []string{"chat/1", "chat/2", "chat/3"} {
		f.Workers = append(f.Workers, Worker{ID: id, Pool: "chat", State: "ready", Since: noon.Add(-time.Hour), Streams: 4, Speed: num(50), ReportAge: num(0.1)})
	}
	return f
}

// TestVerdict: each fault alone has its severity, its sentence and what to do.
func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Facts)
		after  time.Duration
		level  Severity
		says   string
		action string
	}{
		{"nothing", func(*Facts) {}, 0, Well, "all is well: 3 workers serve", ""},
		{"no worker", func(f *Facts) { f.Pools[0].Ready = 0; f.Workers[0].State = "stopped" }, 0, Down, "pool chat has no ready worker: 1 stopped, 2 ready", "log"},
		{"no door", func(f *Facts) { f.Doors[0].Silent = "connection refused" }, 0, Down, "no door answers: connection refused", "log"},
		{"one door of two", func(f *Facts) { f.Doors = append(f.Doors, Door{ID: "b", Silent: "timeout"}) }, 0, AtRisk, "1 of 2 doors do not answer: b: timeout", ""},
		{"failures", func(f *Facts) { f.Pools[0].FailedShare = num(0.02) }, 0, Hurting, "2.0 % of the requests to pool chat failed", "log"},
		{"few failures", func(f *Facts) { f.Pools[0].FailedShare = num(0.01) }, 0, Well, "", ""},
		{"refusals", func(f *Facts) { f.Pools[0].Refused = num(0.5) }, 0, Hurting, "turns 0.5 requests a second away", "scale"},
		{"slow first tokens", func(f *Facts) { f.Pools[0].TTFT = num(7.25) }, 0, Hurting, "waits 7.2 s or longer", "scale"},
		{"full caches", func(f *Facts) { f.Pools[0].KVPromised = num(0.97) }, 5 * time.Minute, AtRisk, "promised to 97 %", "scale"},
		{"full caches for a moment", func(f *Facts) { f.Pools[0].KVPromised = num(0.97) }, 4 * time.Minute, Well, "", ""},
		{"a queue that grows", func(f *Facts) { f.Pools[0].Waiting, f.Pools[0].WaitingBefore = 30, count(10) }, 5 * time.Minute, AtRisk, "30 requests wait at the door of pool chat, 20 more", "scale"},
		{"a queue that shrinks", func(f *Facts) { f.Pools[0].Waiting, f.Pools[0].WaitingBefore = 30, count(40) }, 5 * time.Minute, Well, "", ""},
		{"a dead worker", func(f *Facts) {
			f.Workers[1].State, f.Workers[1].Reason, f.Pools[0].Ready = "failed", "ended: killed", 2
		}, 0, AtRisk, "chat/2 has failed: ended: killed", "log"},
		{"quarantine", func(f *Facts) { f.Workers[1].State = "quarantined" }, 0, AtRisk, "chat/2 is in quarantine", "log"},
		{"ejected", func(f *Facts) { f.Workers[1].State, f.Workers[1].Reason = "ejected", "5 failures" }, 0, AtRisk, "the door sends nothing to chat/2: 5 failures", "log"},
		{"halted", func(f *Facts) { f.Pools[0].Rotation = Rotation{State: "halted", Reason: "no room"} }, 0, AtRisk, "is halted: no room", "continue"},
		{"rolled back", func(f *Facts) { f.Pools[0].Rotation = Rotation{State: "rolled_back", Ended: noon.Add(-time.Hour)} }, 0, AtRisk, "was rolled back", "log"},
		{"rolled back long ago", func(f *Facts) { f.Pools[0].Rotation = Rotation{State: "rolled_back", Ended: noon.Add(-48 * time.Hour)} }, 0, Well, "", ""},
		{"a silent worker", func(f *Facts) { f.Workers[0].ReportAge = num(31) }, 0, AtRisk, "chat/1 has not reported for 31 s", "log"},
		{"a slow worker", func(f *Facts) { f.Workers[0].Speed = num(30) }, 5 * time.Minute, AtRisk, "the streams of chat/1 get 30 tokens a second, those of its pool 50", "rotate"},
		{"a full disk", func(f *Facts) { f.Journal = "disk full" }, 0, AtRisk, "cannot write its journal: disk full", ""},
		{"a rotation", func(f *Facts) {
			f.Pools[0].Rotation = Rotation{State: "running", Done: 1, Of: 3, Current: "chat/2"}
		}, 0, Changing, "pool chat rotates: 1 of 3 done, now chat/2", "abort"},
		{"a drain", func(f *Facts) { f.Workers[0].State = "draining" }, 0, Changing, "chat/1 drains, 4 requests left", "undrain"},
		{"a start", func(f *Facts) { f.Workers[0].State = "warming" }, 0, Changing, "chat/1 is warming", "log"},
	} {
		f := house()
		c.change(&f)
		var w Watch
		w.Judge(&f)
		f.At = f.At.Add(c.after)
		v := w.Judge(&f)
		if v.Severity != c.level || !strings.Contains(v.Sentence, c.says) {
			t.Errorf("%s: %s: %s; want %s: %s", c.name, v.Severity, v.Sentence, c.level, c.says)
		}
		if c.action != "" && (len(v.Findings) == 0 || len(v.Findings[0].Actions) == 0 || v.Findings[0].Actions[0] != c.action) {
			t.Errorf("%s: the findings %+v offer no %s", c.name, v.Findings, c.action)
		}
		for _, x := range v.Findings {
			if len(x.Actions) > 3 {
				t.Errorf("%s offers %d buttons", x.Code, len(x.Actions))
			}
		}
	}
}

// TestWorstCounts: the verdict is its worst finding, since that began, and back at well
// since it ended.
func TestWorstCounts(t *testing.T) {
	var w Watch
	f := house()
	if v := w.Judge(&f); v.Severity != Well || !v.Since.Equal(noon) {
		t.Fatalf("at first: %+v", v)
	}
	f.At = noon.Add(time.Minute)
	f.Workers[0].State, f.Workers[0].Since = "draining", noon.Add(50*time.Second)
	f.Pools[0].FailedShare = num(0.5)
	v := w.Judge(&f)
	if v.Severity != Hurting || len(v.Findings) != 2 || v.Findings[1].Severity != Changing || !strings.HasSuffix(v.Sentence, "; and 1 more") {
		t.Errorf("two findings: %+v", v)
	}
	f.At, f.Pools[0].FailedShare = noon.Add(2*time.Minute), nil
	if v = w.Judge(&f); v.Severity != Changing || !v.Since.Equal(noon.Add(50*time.Second)) {
		t.Errorf("the drain alone: %+v", v)
	}
	f.At, f.Workers[0].State = noon.Add(3*time.Minute), "ready"
	if v = w.Judge(&f); v.Severity != Well || !v.Since.Equal(f.At) {
		t.Errorf("at last: %+v", v)
	}
}

// TestBounded: a thousand failed workers make a verdict of a hundred findings that
// counts them all.
func TestBounded(t *testing.T) {
	f := Facts{At: noon, Pools: []Pool{{Name: "chat", Desired: 1001, Ready: 1}}}
	for i := range 1000 {
		f.Workers = append(f.Workers, Worker{ID: "chat/" + strconv.Itoa(i), Pool: "chat", State: "failed"})
	}
	var w Watch
	v := w.Judge(&f)
	if len(v.Findings) != mostFindings || !strings.Contains(v.Sentence, "and 999 more") {
		t.Errorf("%d findings; %s", len(v.Findings), v.Sentence)
	}
	f.Workers = nil
	if w.Judge(&f); len(w.since) != 0 {
		t.Errorf("%d findings are remembered that are no more", len(w.since))
	}
}

// TestAlertsHaveTheThresholds: each bound of an alert that is shipped stands in the table,
// with its time, and each row that names an alert is a bound of it.
func TestAlertsHaveTheThresholds(t *testing.T) {
	text, err := os.ReadFile("../../compose/prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr, For string }
		}
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	left := map[string]Threshold{}
	for _, row := range Table {
		if row.Alert != "" {
			left[row.Code] = row
		}
	}
	figure := regexp.MustCompile(`([<>])=? *([0-9.]+)`)
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			for _, m := range figure.FindAllStringSubmatch(r.Expr, -1) {
				value, err := strconv.ParseFloat(m[2], 64)
				if err != nil {
					t.Fatal(err)
				}
				if value == 0 {
					continue // something, or nothing: no bound that one could set
				}
				found := false
				for code, row := range left {
					if row.Alert != r.Alert || row.Value != value || row.Below != (m[1] == "<") {
						continue
					}
					delete(left, code)
					found = true
					if minutes := int(row.For.Minutes()); minutes > 0 && !hasTime(r.Expr+" for "+r.For+" ", row.For) {
						t.Errorf("%s: the alert %s is of another time than %v", code, r.Alert, row.For)
					}
				}
				if !found {
					t.Errorf("the alert %s has the bound %s, which no row of the table has", r.Alert, m[0])
				}
			}
		}
	}
	for code, row := range left {
		t.Errorf("%s: the alert %s has no bound %v", code, row.Alert, row.Value)
	}
}

// hasTime reports whether an alert speaks of a time: as a range, an offset, or its own.
func hasTime(text string, d time.Duration) bool {
	for _, unit := range []string{fmt.Sprintf("%gm", d.Minutes()), fmt.Sprintf("%gh", d.Hours())} {
		if strings.Contains(text, "["+unit+"]") || strings.Contains(text, "offset "+unit) || strings.Contains(text, "for "+unit+" ") {
			return true
		}
	}
	return false
}

// TestTable: each row is somebody's, and each code stands once.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range Table {
		if seen[row.Code] {
			t.Errorf("%s stands twice", row.Code)
		}
		seen[row.Code] = true
		if row.Severity == "" && row.Rule == "" && row.Alert == "" {
			t.Errorf("nobody looks at %s", row.Code)
		}
		if row.Value == 0 && row.For == 0 || row.Text == "" {
			t.Errorf("%s tells nothing: %+v", row.Code, row)
		}
	}
}
