package canary

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/configs"
)

// TestBook: a trial goes on where it stood after its door has ended, and so do its
// conversations; another model begins anew; a damaged file is told of, and stops nothing.
func TestBook(t *testing.T) {
	dir, now := t.TempDir(), began
	p := plan()
	route := &configs.Route{Name: "r", Canary: &p}
	first := Open(dir)
	trial := first.Of(route, now)
	trial.step(1, now)
	where := map[string]bool{}
	for i := range 500 {
		where[fmt.Sprint(i)] = trial.Choose(fmt.Sprint(i), true, now)
	}
	first.Tend(now.Add(time.Second), true)
	if err := first.Fault(); err != nil {
		t.Fatal(err)
	}

	second := Open(dir)
	again := second.Of(route, now.Add(time.Minute))
	if a, b := trial.Shown(), again.Shown(); a.Share != b.Share || a.Serial != b.Serial || !a.Since.Equal(b.Since) {
		t.Errorf("it stood at %+v, and goes on at %+v", a, b)
	}
	again.step(2, now)
	for name, was := range where {
		if again.Choose(name, true, now) != was {
			t.Fatalf("%s has moved", name)
		}
	}
	// The first door still ends; what it writes last does not undo what the second did.
	if err := again.Command(RollBack, "operator", now); err != nil {
		t.Fatal(err)
	}
	second.Tend(now, false)
	first.Tend(now.Add(time.Hour), true)
	trial.Choose("one more", true, now)
	first.Tend(now.Add(time.Hour), true)
	if s := Open(dir).Of(route, now).Shown(); s.State != control.CanaryRolledBack || *s.Reason != "rolled back by operator" {
		t.Errorf("after both have ended it stands at %+v", s)
	}

	p.MinRequests = 7 // which is no other trial
	if same := second.Of(route, now); same != again || same.Shown().MinRequests != 7 {
		t.Errorf("another number of requests has begun another trial: %+v", same.Shown())
	}
	other := plan(func(p *configs.RouteCanary) { p.Model = "sql-3" })
	if s := second.Of(&configs.Route{Name: "r", Canary: &other}, now).Shown(); s.State != control.CanaryRunning || s.Step != 1 {
		t.Errorf("another model stands at %+v", s)
	}
	second.Keep(nil)
	if len(second.Shown()) != 0 {
		t.Error("a route that is gone has a trial")
	}

	if err := os.WriteFile(filepath.Join(dir, file), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := Open(dir)
	if err := damaged.Fault(); err == nil || !strings.Contains(err.Error(), "canaries") {
		t.Errorf("a damaged file: %v", err)
	}
	if s := damaged.Of(route, now).Shown(); s.Step != 1 || s.State != control.CanaryRunning {
		t.Errorf("beside a damaged file it stands at %+v", s)
	}
	if err := damaged.Find("r").Command(Promote, "operator", now); err != nil {
		t.Fatal(err)
	}
	damaged.Tend(now, false)
	if s := Open(dir).Of(route, now).Shown(); damaged.Fault() != nil || s.State != control.CanaryPromoted {
		t.Errorf("%v; written over the damaged file: %+v", damaged.Fault(), s)
	}
}
