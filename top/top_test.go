package top

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/balancer/control"
	"roundhouse/live"
	"roundhouse/measure/verdict"
)

var update = flag.Bool("update", false, "write the frames anew")

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func ref[T any](v T) *T { return &v }

// house is two pools, with a worker in each state and one whose name would steer a
// terminal.
func house(t *testing.T) *House {
	t.Helper()
	s := live.State{
		Schema: 1, At: noon, Verdict: verdict.Verdict{Severity: verdict.AtRisk, Since: noon, Sentence: "chat/3 has failed: ended: killed; it is started again at 12:00:10 UTC"},
		Door:    control.DoorShown{State: "ready", Streams: 12, Queued: 3},
		Pools:   []control.PoolShown{{Name: "chat", Desired: 4, Ready: 2, Rotation: control.RotationShown{State: "running"}}, {Name: "vision", Desired: 1, Ready: 1, Rotation: control.RotationShown{State: "idle"}}},
		Figures: []live.Figures{{Tokens: ref(412.0), TTFT50: ref(0.21), TTFT95: ref(1.9)}, {Pool: ref("chat"), Tokens: ref(400.0), InFlight: 11, Waiting: 3, KVUsage: ref(0.62)}, {Pool: ref("vision")}},
	}
	for i, state := range []string{"ready", "draining", "failed", "ready"} {
		w := worker{ID: "chat/" + strconv.Itoa(i+1), Pool: "chat", Name: strconv.Itoa(i + 1), Since: noon.Add(-time.Hour), Models: []string{"qwen"}, Restarts: i}
		w.State = control.WorkerShown{}.State
		if err := json.Unmarshal([]byte(`"`+state+`"`), &w.State); err != nil {
			t.Fatal(err)
		}
		if state != "failed" {
			w.KV = control.KV{CapacityTokens: ref(int64(114432)), ChargedTokens: int64(20000 * (i + 1)), Usage: ref(0.2 * float64(i+1))}
			w.Requests = control.Requests{InFlight: 4 * (i + 1), Waiting: ref(i)}
			w.Traffic = control.Traffic{TTFTSeconds: ref(0.25), TokensPerSecond: ref(40 - float64(i)), PrefixHits: ref(0.5), Served: ref(int64(1000))}
		}
		s.Workers = append(s.Workers, w)
	}
	s.Workers = append(s.Workers, worker{ID: "vision/\x1b]0;evil\x07\x1b[2J名前", Pool: "vision", State: "ready"})
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	h := &House{}
	for name, data := range map[string][]byte{"hello": []byte(`{"schema":1,"rights":"operator","supervisor":true}`), "state": data} {
		if err := h.Take(name, data, noon); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 30 {
		v := float64(i * i % 37)
		m, err := json.Marshal(live.Sample{At: noon, Step: 5, Series: []live.SampleValue{{Name: "tokens_per_second", Value: &v}, {Name: "tokens_per_second", Pool: ref("chat"), Value: &v}, {Name: "waiting"}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Take("sample", m, noon); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 40 {
		if err := h.Take("event", fmt.Appendf(nil, `{"id":%d,"at":"2026-11-22T12:00:00Z","kind":"drain","worker":"chat/1","who":"operator","text":"asked \u001b[2J for"}`, i+1), noon); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// answer is what is seen of a worker: sixty lines of its log, and two choices.
func answer(w Want) Seen {
	got := Seen{Want: w}
	for i := range 60 {
		got.Lines = append(got.Lines, fmt.Sprintf("line %d \x1b[31mof the log", i))
	}
	for i, chosen := range []string{"chat/1", "chat/4"} {
		got.Choices = append(got.Choices, control.Decision{Request: fmt.Sprintf("req-%d", i), At: noon, Pool: "chat", Policy: "least_kv", Reason: "least", Chosen: chosen, Need: 1312, Candidates: []control.Candidate{
			{Worker: "chat/1", Score: 0.24, CapacityTokens: ref(int64(1000)), ChargedTokens: 240, PredictedTTFT: ref(0.19), PrefixTokens: 512},
			{Worker: "chat/2", Excluded: "it is draining"},
			{Worker: "chat/4", Score: 0.81, CapacityTokens: ref(int64(1000)), ChargedTokens: 800, ForeignTokens: 10, PredictedTTFT: ref(0.61), PrefillTokens: 900},
		}})
	}
	return got
}

func (s *Screen) press(keys ...string) (act *Act) {
	for _, k := range keys {
		if a, _ := s.Press(k); a != nil {
			act = a
		}
	}
	return act
}

// TestFrames: what is drawn is what lies in testdata, and fits the terminal.
func TestFrames(t *testing.T) {
	for name, c := range map[string]struct {
		wide, high int
		keys       []string
		ascii      bool
		age        time.Duration
	}{
		"list-80x24":    {80, 24, nil, false, 0},
		"list-200x60":   {200, 60, []string{"down", " ", "s"}, false, 0},
		"ascii-80x24":   {80, 24, nil, true, 0},
		"worker-80x24":  {80, 24, []string{"down", "down", "enter"}, false, 0},
		"filter-80x24":  {80, 24, []string{"/", "v", "i", "s"}, false, 0},
		"confirm-80x24": {80, 24, []string{"down", "d"}, false, 0},
		"stale-80x24":   {80, 24, nil, false, 9 * time.Second},
		"tiny-20x5":     {20, 5, nil, false, 0},
		"log-80x24":     {80, 24, []string{"down", "l"}, false, 0},
		"back-80x24":    {80, 24, []string{"down", "l", "pgup"}, false, 0},
		"explain-80x24": {80, 24, []string{"down", "e", "up"}, false, 0},
		"explain-ascii": {80, 24, []string{"down", "e"}, true, 0},
		"events-80x24":  {80, 24, []string{"v"}, false, 0},
		"help-80x24":    {80, 24, []string{"?"}, false, 0},
	} {
		s := &Screen{Wide: c.wide, High: c.high, Plain: true, ASCII: c.ascii, House: house(t), Now: noon.Add(c.age)}
		for _, key := range c.keys {
			s.press(key)
			if w := s.Want(); w != (Want{}) {
				s.Show(answer(w))
			}
		}
		lines := s.Frame()
		if len(lines) != c.high {
			t.Errorf("%s has %d lines", name, len(lines))
		}
		for _, line := range lines {
			wide := 0
			for _, r := range line {
				wide += width(r)
			}
			if wide > c.wide || strings.ContainsAny(line, "\x1b\x07\r\n") {
				t.Errorf("%s: %q does not fit, or steers the terminal", name, line)
			}
		}
		got, path := strings.Join(lines, "\n")+"\n", "testdata/"+name+".txt"
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
		}
	}
}

// TestColours: colours go with words and shapes, and not where they are not wanted.
func TestColours(t *testing.T) {
	s := &Screen{Wide: 80, High: 24, House: house(t), Now: noon}
	if text := strings.Join(s.Frame(), "\n"); !strings.Contains(text, "\x1b[31m✖ failed") || strings.Contains(text, "\x1b[2J") {
		t.Errorf("%q", text)
	}
}

// TestActs: nothing is done without a yes, several at once where they are tagged, and a
// reader may not.
func TestActs(t *testing.T) {
	s := &Screen{Wide: 80, High: 24, House: house(t), Now: noon}
	if act := s.press("d", "y"); act != nil || !strings.Contains(s.footer(), "s sort") {
		t.Errorf("without a worker: %+v", act)
	}
	if act := s.press("down", "d", "n"); act != nil {
		t.Errorf("after a no: %+v", act)
	}
	if act := s.press("d", "enter"); act != nil {
		t.Errorf("without a yes: %+v", act)
	}
	if act := s.press("d", "y"); act == nil || act.Verb != "drain" || len(act.Workers) != 1 || act.Workers[0] != "chat/1" {
		t.Errorf("after a yes: %+v", act)
	}
	if act := s.press(" ", " ", "r", "y"); act == nil || act.Verb != "rotate" || len(act.Workers) != 2 {
		t.Errorf("two that are tagged: %+v", act)
	}
	s.House.Hello.Rights = control.Read
	if act := s.press("d", "y"); act != nil {
		t.Errorf("a reader's: %+v", act)
	}
}

// TestChange: a change replaces what it names, a new worker comes, one that is gone goes,
// and while it is paused the picture stays.
func TestChange(t *testing.T) {
	s := &Screen{Wide: 80, High: 24, Plain: true, House: house(t), Now: noon}
	s.press("p")
	before := strings.Join(s.Frame(), "\n")
	s.take(Message{Name: "change", Data: []byte(`{"at":"2026-11-22T12:00:01Z","workers":[{"id":"chat/1","state":"drained","requests":{"in_flight":0,"waiting":null}},{"id":"chat/9","pool":"chat","state":"ready"}],"gone":["chat/4"]}`)})
	if now := strings.Join(s.Frame(), "\n"); now != before {
		t.Errorf("paused, it changes:\n%s", now)
	}
	s.press("p")
	h := s.House
	if i := h.find("chat/1"); h.State.Workers[i].State != "drained" || h.State.Workers[i].Requests.Waiting != nil || *h.State.Workers[i].KV.Usage != 0.2 {
		t.Errorf("the changed one is %+v", h.State.Workers[i])
	}
	if h.find("chat/9") < 0 || h.find("chat/4") >= 0 {
		t.Errorf("the workers are %+v", h.State.Workers)
	}
}

// FuzzKeys: whatever a terminal sends, keys come of it and nothing is lost or hangs.
func FuzzKeys(f *testing.F) {
	for _, text := range []string{"q", "\x1b[A\x1b[5~", "\x1b", "\x1b[", "名", "\xe5\x90", "\x00\x7f\r"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		keys, left := keysOf(in)
		if len(keys) > len(in) || len(left) > len(in) {
			t.Fatalf("%d keys and %d left of %d", len(keys), len(left), len(in))
		}
	})
}

// pty is a terminal and the end that a person sits at.
func pty(t *testing.T) (person, terminal *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close(); person.Close() })
	return person, terminal
}

// TestTerminal: on a real terminal, keys work, an action is done after its yes, and the
// terminal is as it was afterwards.
func TestTerminal(t *testing.T) {
	person, terminal := pty(t)
	was, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	screen := make(chan string, 4096)
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := person.Read(buf)
			if err != nil {
				close(screen)
				return
			}
			screen <- string(buf[:n])
		}
	}()
	seen := ""
	shows := func(what string) {
		t.Helper()
		late := time.After(time.Minute)
		for !strings.Contains(seen, what) {
			select {
			case text := <-screen:
				seen += text
			case <-late:
				t.Fatalf("the terminal never shows %q; it shows %q", what, seen)
			}
		}
		_, seen, _ = strings.Cut(seen, what)
	}
	messages, done, acts := make(chan Message), make(chan error, 1), make(chan Act, 1)
	s := &Screen{House: house(t)}
	go func() {
		done <- Run(context.Background(), terminal, terminal, s, messages, func(context.Context, Want) Seen { return Seen{Lines: []string{"the log \x1b[2J is here"}} }, func(_ context.Context, a Act) string { acts <- a; return "as you wish" })
	}()
	shows(enter)
	shows("chat/1")
	if _, err := person.WriteString("\x1b[Bd"); err != nil {
		t.Fatal(err)
	}
	shows("[y/N]")
	if _, err := person.WriteString("y"); err != nil {
		t.Fatal(err)
	}
	if a := <-acts; a.Verb != "drain" || a.Workers[0] != "chat/1" {
		t.Errorf("done was %+v", a)
	}
	shows("as you wish")
	if _, err := person.WriteString("l"); err != nil {
		t.Fatal(err)
	}
	shows("log of chat/1")
	shows("the log")
	if strings.Contains(seen, "\x1b[2J") {
		t.Error("a line of a log steers the terminal")
	}
	messages <- Message{Name: "bye", Data: []byte(`{"reason":"ending"}`)}
	shows("STALE: ending")
	if _, err := person.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	shows(leave)
	is, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil || *is != *was {
		t.Errorf("the terminal is not as it was: %v", err)
	}
}
