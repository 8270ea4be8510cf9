package usage

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/configs"
)

var quiet = slog.New(slog.DiscardHandler)

func noon(day string) time.Time {
	t, err := time.Parse(time.RFC3339, day+"T12:00:00Z")
	if err != nil {
		panic(err)
	}
	return t
}

var one = control.Used{Requests: 1, TokensIn: 10, TokensOut: 5}

func days(u control.Usage) (out []string) {
	for _, r := range u.Rows {
		out = append(out, fmt.Sprintf("%s %s %s %d %d", r.Day, r.Key, r.Model, r.Requests, r.TokensIn))
	}
	return out
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %q; want %q", what, got, want)
	}
}

// TestFolder: two doors of one folder know each other's sums, a third one knows them
// after both have died, and months that are over are read from their files.
func TestFolder(t *testing.T) {
	dir, now := t.TempDir(), noon("2026-11-30")
	a, b := Open(dir, now, quiet), Open(dir, now, quiet)
	a.Count("team", "m", one, now)
	a.Count("team", "m", one, now)
	b.Count("team", "n", one, now)
	a.Write(now)
	b.Write(now)
	a.Write(now)
	for name, book := range map[string]*Book{"a": a, "b": b} {
		if day, month := book.Of("team", now); day.Requests != 3 || month.TokensIn != 30 {
			t.Errorf("%s: %+v %+v", name, day, month)
		}
	}
	now = noon("2026-12-01")
	b.Count("team", "m", one, now)
	b.Write(now)
	c := Open(dir, now, quiet)
	if day, month := c.Of("team", now); day.Requests != 1 || month.Requests != 1 {
		t.Errorf("after a month's end: %+v %+v", day, month)
	}
	same(t, "two months", days(c.Rows("2026-11-01", "2026-12-31", now)), "2026-11-30 team m 2 20", "2026-11-30 team n 1 10", "2026-12-01 team m 1 10")
	same(t, "this month", days(c.Rows("", "", now)), "2026-12-01 team m 1 10")
	if info, err := os.Stat(filepath.Join(dir, "2026-12.usage")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	now = noon("2028-01-15")
	c.Count("team", "m", one, now)
	c.Write(now)
	left, _ := filepath.Glob(filepath.Join(dir, "*.usage"))
	if len(left) != 1 || filepath.Base(left[0]) != "2028-01.usage" {
		t.Errorf("thirteen months later there are %v", left)
	}
}

// TestLateAtMonthsEnd: what was counted before midnight and is written after it counts
// in its month.
func TestLateAtMonthsEnd(t *testing.T) {
	dir, now := t.TempDir(), noon("2026-11-30")
	a := Open(dir, now, quiet)
	a.Count("team", "m", one, now)
	now = noon("2026-12-01")
	a.Write(now)
	same(t, "november", days(a.Rows("2026-11-30", "2026-11-30", now)), "2026-11-30 team m 1 10")
	if _, month := a.Of("team", now); month.Requests != 0 {
		t.Errorf("december: %+v", month)
	}
}

// TestDamagedFile: a line that is cut or is no line costs itself alone.
func TestDamagedFile(t *testing.T) {
	dir, now := t.TempDir(), noon("2026-11-22")
	path := filepath.Join(dir, "2026-11.usage")
	good := `{"d":"2026-11-22","k":"team","m":"m","r":2,"i":20,"o":1}` + "\n"
	text := good + "\x00\x00rubbish\n" + `{"d":"2026-99-22","k":"team","m":"m","r":2}` + "\n" + `{"d":"2026-11-22","k":"team","m":"m","r":-9}` + "\n" + good + `{"d":"2026-11-2`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	a := Open(dir, now, slog.New(slog.NewTextHandler(&log, nil)))
	a.Count("team", "m", one, now)
	a.Write(now)
	if day, _ := Open(dir, now, quiet).Of("team", now); day.Requests != 5 || a.Fault() != nil {
		t.Errorf("%+v %v", day, a.Fault())
	}
	if !strings.Contains(log.String(), path) || !strings.Contains(log.String(), "lines=4") {
		t.Errorf("the log says %s", log.String())
	}
}

// TestCondense: a file that grew is written anew, and the doors that have it open find it.
func TestCondense(t *testing.T) {
	dir, now := t.TempDir(), noon("2026-11-22")
	line := `{"d":"2026-11-22","k":"team","m":"m","r":1,"i":10,"o":1}` + "\n"
	other := Open(dir, now, quiet)
	path := filepath.Join(dir, "2026-11.usage")
	if err := os.WriteFile(path, []byte(strings.Repeat(line, spareLines+10)), 0o600); err != nil {
		t.Fatal(err)
	}
	a := Open(dir, now, quiet)
	a.Write(now)
	if text, err := os.ReadFile(path); err != nil || strings.Count(string(text), "\n") != 1 {
		t.Errorf("it has %d lines: %v", strings.Count(string(text), "\n"), err)
	}
	for name, book := range map[string]*Book{"a": a, "other": other} {
		book.Count("team", "m", one, now)
		book.Write(now)
		if name == "other" {
			a.Write(now)
		}
	}
	other.Write(now)
	for _, book := range []*Book{a, other} {
		if day, _ := book.Of("team", now); day.Requests != spareLines+12 {
			t.Errorf("%+v", day)
		}
	}
}

// TestFullDisk: what cannot be written counts all the same, and is written once it can be.
func TestFullDisk(t *testing.T) {
	dir, now := filepath.Join(t.TempDir(), "usage"), noon("2026-11-22")
	a := Open(dir, now, quiet)
	a.Count("team", "m", one, now)
	a.Write(now)
	if day, _ := a.Of("team", now); day.Requests != 1 || a.Fault() == nil {
		t.Errorf("without the folder: %+v, %v", day, a.Fault())
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	a.Write(now)
	if day, _ := Open(dir, now, quiet).Of("team", now); day.Requests != 1 || a.Fault() != nil {
		t.Errorf("with it: %+v, %v", day, a.Fault())
	}
}

// TestForeign: doors of other folders count, the larger of what two doors of one tell.
func TestForeign(t *testing.T) {
	now := noon("2026-11-22")
	a, b := Open("", now, quiet), Open("", now, quiet)
	a.Count("team", "m", one, now)
	b.Count("team", "m", one, now)
	early := b.Told([]string{"team"}, now)
	b.Count("team", "m", one, now)
	a.Hear(b.Told([]string{"team"}, now))
	a.Hear(early)
	a.Hear(a.Told([]string{"team"}, now))
	a.Hear(&control.FolderUse{Folder: "bad", Day: "x"})
	if day, month := a.Of("team", now); day.Requests != 3 || month.Requests != 3 {
		t.Errorf("%+v %+v", day, month)
	}
	now = noon("2026-11-23")
	if day, month := a.Of("team", now); day.Requests != 0 || month.Requests != 3 {
		t.Errorf("the next day: %+v %+v", day, month)
	}
}

// TestForeignIsKept: what doors of other folders have told counts also at a door that is
// new, whether another door of its folder heard of it or it itself; a damaged file costs
// only what it had.
func TestForeignIsKept(t *testing.T) {
	dir, now := t.TempDir(), noon("2026-11-22")
	tell := func(folder string, n int) *control.FolderUse {
		far := Open("", now, quiet)
		far.id = folder
		for range n {
			far.Count("team", "m", one, now)
		}
		return far.Told([]string{"team"}, now)
	}
	used := func(what string, b *Book, want int64) {
		t.Helper()
		if day, month := b.Of("team", now); day.Requests != want || month.Requests != want {
			t.Errorf("%s: %+v %+v; want %d", what, day, month, want)
		}
	}
	a, b := Open(dir, now, quiet), Open(dir, now, quiet)
	a.Hear(tell("east", 3))
	b.Hear(tell("west", 4))
	a.Write(now)
	b.Write(now)
	b.Hear(tell("west", 2)) // an older one that came late
	b.Write(now)
	used("a new door", Open(dir, now, quiet), 7)
	path := filepath.Join(dir, "elsewhere.json")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if err := os.WriteFile(path, []byte(`[{"folder":"east","d`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Open(dir, now, quiet)
	used("a damaged file", c, 0)
	c.Hear(tell("east", 5))
	c.Write(now)
	used("written anew", Open(dir, now, quiet), 5)
	now = noon("2026-12-01")
	c.Hear(tell("east", 1))
	c.Write(now)
	used("the next month", Open(dir, now, quiet), 1)
}

// TestOthersAreTold: a door that is new learns from another what a door used that is gone,
// of this month, as often as it is told.
func TestOthersAreTold(t *testing.T) {
	now := noon("2026-11-30")
	gone, there, fresh := Open("", now, quiet), Open("", now, quiet), Open("", now, quiet)
	gone.Count("team", "m", one, now)
	there.Hear(gone.Told([]string{"team"}, now))
	for range 2 {
		for _, o := range there.Others(now) {
			fresh.Hear(&o)
		}
	}
	if _, month := fresh.Of("team", now); month.Requests != 1 {
		t.Errorf("the new door knows of %d requests", month.Requests)
	}
	if old := there.Others(noon("2026-12-01")); len(old) != 0 {
		t.Errorf("of another month: %+v", old)
	}
}

// TestBudget: each figure refuses when it is used up, until the day or the month ends
// where the zone says.
func TestBudget(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := noon("2026-03-28")
	f := func(name string, k configs.Key, live int, want string) {
		t.Helper()
		k.Name = "team"
		b := Open("", now, quiet)
		b.SetZone(zone, now)
		b.Count("team", "m", control.Used{Requests: 2, TokensIn: 100, TokensOut: 50}, now)
		got := ""
		if f := b.Refuse(&k, live, now); f != nil {
			got = fmt.Sprint(f.Status, " ", f.Code, " ", f.RetryAfter, " ", f.Message)
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q; want %q", name, got, want)
		}
	}
	f("none", configs.Key{}, 9, "")
	f("requests left", configs.Key{Day: configs.Budget{Requests: 3}}, 0, "")
	f("requests under way", configs.Key{Day: configs.Budget{Requests: 3}}, 1, "429 insufficient_quota 39600 key \"team\" has used up its budget of 3 requests a day; it begins anew at 2026-03-29T00:00:00+01:00")
	f("tokens", configs.Key{Day: configs.Budget{Tokens: 150}}, 0, "150 tokens a day")
	f("tokens in", configs.Key{Month: configs.Budget{TokensIn: 100}}, 0, "100 tokens of prompts a month; it begins anew at 2026-04-01T00:00:00+02:00")
	f("tokens out", configs.Key{Month: configs.Budget{TokensOut: 50}}, 0, "50 tokens of answers a month")
	f("tokens left", configs.Key{Day: configs.Budget{Tokens: 151, TokensIn: 101, TokensOut: 51}}, 5, "")
}
