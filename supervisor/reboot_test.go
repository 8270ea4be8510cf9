package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roundhouse/supervisor/journal"
)

// rebooted ends every process at once, as a machine does that loses its power, and
// has the journal be of another boot.
func (b *bench) rebooted() {
	b.t.Helper()
	b.kill()
	b.clear()
	j, err := journal.Open(filepath.Join(b.cfg.StateDir, "journal"))
	if err != nil {
		b.t.Fatal(err)
	}
	var last clock
	err = j.Read(journal.Meta, func(key string, data []byte) error {
		if key != "clock" {
			return nil
		}
		return json.Unmarshal(data, &last)
	})
	last.Boot = "another"
	if err := errors.Join(err, j.Write([]journal.Change{{Bucket: journal.Meta, Key: "clock", Value: last}}), j.Close()); err != nil {
		b.t.Fatal(err)
	}
}

// The machine goes down in the middle of a rotation: once it is up again everything
// runs, nothing counts as crashed or failed, and the rotation goes on to its end.
func TestRotationGoesOnAfterReboot(t *testing.T) {
	b := newBench(t, 2, map[string]string{"FAKE_PACE": "5ms"})
	b.spawn()
	b.waitReady()
	streams := make(chan error, 8)
	for range cap(streams) { // so that the first turn has something to wait for
		go func() { streams <- b.count(100_000) }()
	}
	b.until("both have streams", func() bool {
		var v struct {
			Workers []struct{ Requests struct{ In_Flight int } }
		}
		res, err := client.Get(b.api + "/api/workers")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		return json.NewDecoder(res.Body).Decode(&v) == nil && len(v.Workers) == 2 && v.Workers[0].Requests.In_Flight > 0
	})
	if status, text := b.post("/api/pools/chat/rotate", ""); status != http.StatusOK {
		t.Fatal(status, text)
	}
	b.until("the first drains", func() bool { return b.workers()[0].State == "draining" })
	b.rebooted()
	for range cap(streams) {
		<-streams // they ended with the machine
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := b.start(ctx)
	b.until("the rotation is done", func() bool { state, _ := b.rotation(); return state == "done" })
	b.until("both serve", func() bool {
		w := b.workers()
		return len(w) == 2 && w[0].State == "ready" && w[1].State == "ready" && w[0].Generation == 2 && w[1].Generation == 3
	})
	if text := b.events("crashed") + b.events("failed"); text != "" {
		t.Errorf("events: %s", text)
	}
	if text := b.events("interrupted"); !strings.Contains(text, "chat/2") {
		t.Errorf("events: %s", text)
	}
	err := b.s.Shutdown(ctx, false)
	cancel()
	if err := errors.Join(err, <-ended); err != nil {
		t.Error(err)
	}
}

// A schedule is turned off until a time, or for good, and on again; what is said of it
// is what is shown, and an event says who.
func TestScheduleIsTurnedOff(t *testing.T) {
	b := newBench(t, 1, nil)
	b.cfg.Pools[0].Rotation.Schedule, b.cfg.Pools[0].Rotation.Timezone = "0 3 * * *", "Europe/Berlin"
	b.run()
	f := func(ask string, status int, off bool, until, next string) {
		t.Helper()
		got, text := b.post("/api/schedule", ask)
		if got != status {
			t.Errorf("%s: %d %s; want %d", ask, got, text, status)
		}
		if got != http.StatusOK {
			return
		}
		var v struct {
			Schedules []struct {
				Off       bool
				Off_Until string
				Next      *time.Time
			}
		}
		if err := json.Unmarshal([]byte(text), &v); err != nil || len(v.Schedules) != 1 {
			t.Fatal(err, text)
		}
		s, when := v.Schedules[0], ""
		if s.Next != nil {
			when = s.Next.Format(time.RFC3339)
		}
		if s.Off != off || s.Off_Until != until || next != "*" && when != next {
			t.Errorf("%s: off %v until %q, next %q; want %v, %q, %q", ask, s.Off, s.Off_Until, when, off, until, next)
		}
	}
	f(`{"pool":"chat","off":true,"until":"2036-06-01T12:00:00+02:00"}`, 200, true, "2036-06-01T10:00:00Z", "2036-06-02T01:00:00Z")
	f(`{"pool":"chat","off":true}`, 200, true, "", "")
	f(`{"off":false}`, 200, false, "", "*")
	f(`{"pool":"none","off":true}`, 404, false, "", "")
	f(`{"of":true}`, 400, false, "", "")
	if text := b.events("schedule"); !strings.Contains(text, "is off until 2036-06-01T10:00:00Z") || !strings.Contains(text, "is on") {
		t.Errorf("events: %s", text)
	}
}
