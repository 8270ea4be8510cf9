package schedule

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the same zones on every machine
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestNext(t *testing.T) {
	f := func(cron, after string, want ...string) {
		t.Helper()
		p, err := Parse(Spec{Cron: cron, Timezone: "Europe/Berlin"})
		if err != nil {
			t.Fatal(err)
		}
		now := at(t, after)
		for _, w := range want {
			now = p.Next(now)
			if !now.Equal(at(t, w)) {
				t.Fatalf("%s: got %s; want %s", cron, now.In(p.Zone()).Format(time.RFC3339), w)
			}
		}
	}
	f("0 3 * * *", "2026-11-20T12:00:00+01:00", "2026-11-21T03:00:00+01:00", "2026-11-22T03:00:00+01:00")
	// 2026-03-29: 02:00 becomes 03:00, so 02:30 comes at the change, once.
	f("30 2 * * *", "2026-03-28T12:00:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00")
	// 2026-10-25: 03:00 becomes 02:00, so 02:30 is there twice; the first counts.
	f("30 2 * * *", "2026-10-24T12:00:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00")
	f("30 2 * * *", "2026-10-25T02:10:00+01:00", "2026-10-26T02:30:00+01:00")
	f("0 3 * * *", "2026-10-25T02:10:00+01:00", "2026-10-25T03:00:00+01:00")
	f("0 3 29 2 *", "2026-03-01T00:00:00+01:00", "2028-02-29T03:00:00+01:00")
}

func TestParseRefuses(t *testing.T) {
	f := func(spec Spec, want string) {
		t.Helper()
		_, err := Parse(spec)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("got %v; want it to say %q", err, want)
		}
	}
	f(Spec{Cron: "0 0 31 2 *"}, "no day")
	f(Spec{Cron: "*/0 * * * *"}, "five-field cron")
	f(Spec{Cron: "60 * * * *"}, "five-field cron")
	f(Spec{Cron: "0 0 3 * * * *"}, "five-field cron")
	f(Spec{Cron: "@every 1ns"}, "@every")
	f(Spec{Cron: "CRON_TZ=UTC 0 3 * * *"}, "timezone")
	f(Spec{Cron: "0 3 * * *", Timezone: "Nope"}, "IANA")
	f(Spec{Blackout: []string{"Mon-Fry 08:00-20:00"}}, "blackout")
	f(Spec{Blackout: []string{"Mon 08:00-25:00"}}, "blackout")
	f(Spec{Blackout: []string{"Mon 08:00-08:00"}}, "blackout")
}

func TestDue(t *testing.T) {
	f := func(missed, last, now string, run bool, lost int) {
		t.Helper()
		p, err := Parse(Spec{Cron: "0 3 * * *", Timezone: "UTC", Missed: missed, Blackout: []string{"Sun 00:00-06:00"}})
		if err != nil {
			t.Fatal(err)
		}
		v := p.Due(at(t, last), at(t, now))
		if v.Run != run || v.Missed != lost {
			t.Fatalf("got %+v; want run %v, missed %d", v, run, lost)
		}
		if again := p.Due(v.Last, at(t, now)); again.Run || again.Missed != 0 {
			t.Fatalf("the same moment ran twice: %+v", again)
		}
	}
	f("once", "2026-11-19T12:00:00Z", "2026-11-20T02:59:59Z", false, 0)
	f("once", "2026-11-19T12:00:00Z", "2026-11-20T03:00:01Z", true, 0)
	f("once", "2026-11-19T12:00:00Z", "2026-11-20T09:00:00Z", true, 0)
	f("skip", "2026-11-19T12:00:00Z", "2026-11-20T09:00:00Z", false, 1)
	f("once", "2026-11-16T12:00:00Z", "2026-11-20T09:00:00Z", true, 3)
	f("once", "2025-11-16T12:00:00Z", "2026-11-20T09:00:00Z", true, 368) // a clock a year ahead runs once
	f("once", "2026-11-20T03:00:00Z", "2026-11-20T02:30:00Z", false, 0)  // an hour back: not again
	f("once", "2027-11-20T03:00:00Z", "2026-11-20T02:30:00Z", false, 0)  // a year back: begins anew
	f("skip", "2026-11-21T12:00:00Z", "2026-11-22T05:00:00Z", false, 0)  // Sunday's blackout
	f("skip", "2026-11-21T12:00:00Z", "2026-11-22T06:00:00Z", true, 0)   // and its end
}

func TestJitter(t *testing.T) {
	a, _ := Parse(Spec{Cron: "0 3 * * *", Timezone: "UTC", Jitter: time.Hour, Salt: "a"})
	b, _ := Parse(Spec{Cron: "0 3 * * *", Timezone: "UTC", Jitter: time.Hour, Salt: "b"})
	now := at(t, "2026-11-20T12:00:00Z")
	if a.Next(now).Equal(b.Next(now)) {
		t.Fatal("two pools got the same jitter")
	}
	if !a.Next(now).Equal(a.Next(now)) {
		t.Fatal("jitter is not the same when asked twice")
	}
	v := a.Due(now, a.Next(now))
	if !v.Run || v.Late {
		t.Fatalf("a run at its time with jitter: %+v", v)
	}
}

func TestBlocked(t *testing.T) {
	f := func(window, when string, want bool) {
		t.Helper()
		p, err := Parse(Spec{Timezone: "UTC", Blackout: []string{window}})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Blocked(at(t, when)); got != want {
			t.Fatalf("%s at %s: got %v", window, when, got)
		}
	}
	f("Mon-Fri 08:00-20:00", "2026-11-20T08:00:00Z", true)
	f("Mon-Fri 08:00-20:00", "2026-11-20T20:00:00Z", false)
	f("Mon-Fri 08:00-20:00", "2026-11-21T09:00:00Z", false)
	f("Fri 22:00-06:00", "2026-11-21T05:59:00Z", true)
	f("Fri 22:00-06:00", "2026-11-20T05:59:00Z", false)
	f("Sat,Sun 00:00-24:00", "2026-11-22T23:59:00Z", true)
	f("Fri-Mon 08:00-09:00", "2026-11-22T08:30:00Z", true)
	f("08:00-09:00", "2026-11-18T08:30:00Z", true)
}
