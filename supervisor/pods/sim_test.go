package pods

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"roundhouse/supervisor/schedule"
)

// cluster is a pool of pods whose owner replaces those that go, on a clock of its own.
type cluster struct {
	*testing.T
	pool   Pool
	state  State
	now    time.Time
	pods   []*simPod
	made   int
	want   int           // pods that the owner wants
	start  time.Duration // until a new pod is ready
	end    time.Duration // until a pod that leaves is gone
	work   time.Duration // until a marked pod is idle
	budget int           // status of evictions
	marks  int           // status of marks
	broken bool          // new pods never become ready
	crash  bool          // new pods restart soon after they are ready
	deaf   bool          // the door gets no answer of new pods
	answer map[Key]Answer
	events []string
	least  int // fewest pods that served at once
}

type simPod struct {
	Pod
	born, gone time.Time // gone: when it is to be gone
	fresh      bool
}

func newCluster(t *testing.T, n int) *cluster {
	c := &cluster{T: t, now: time.Date(2026, 11, 22, 2, 0, 0, 0, time.UTC), want: n, start: 3 * time.Minute, end: 20 * time.Second, work: time.Minute,
		budget: http.StatusCreated, marks: http.StatusOK, answer: map[Key]Answer{}, least: n}
	plan, err := schedule.Parse(schedule.Spec{Cron: "0 3 * * *", Timezone: "UTC", Missed: "once", Salt: "chat"})
	if err != nil {
		t.Fatal(err)
	}
	c.pool = Pool{Name: "chat", Plan: plan, Drain: 10 * time.Minute, Ready: 15 * time.Minute, MinReady: -1}
	for range n {
		p := c.add()
		p.Ready, p.fresh = true, false
	}
	return c
}

func (c *cluster) add() *simPod {
	c.made++
	p := &simPod{Pod: Pod{Name: fmt.Sprintf("vllm-%02d", c.made), UID: fmt.Sprint("uid-", c.made), Grace: 30 * time.Second, Idle: true}, born: c.now, fresh: true}
	c.pods = append(c.pods, p)
	return p
}

// delete is what an eviction or somebody else does.
func (c *cluster) delete(p *simPod) {
	if !p.Leaving {
		p.Leaving, p.gone = true, c.now.Add(c.end)
	}
}

// live lets a second pass for the owner and the pods.
func (c *cluster) live() {
	c.now = c.now.Add(time.Second)
	kept, staying := c.pods[:0], 0
	for _, p := range c.pods {
		if p.Leaving && c.now.After(p.gone) {
			continue
		}
		kept = append(kept, p)
		age := c.now.Sub(p.born)
		if p.fresh && !c.broken {
			p.Ready = age > c.start
			p.Restarts = 0
			if c.crash && age > c.start+5*time.Second {
				p.Restarts = 1
			}
		}
		if p.Failing = ""; p.fresh && c.deaf {
			p.Failing = "ejected: no answer"
		}
		p.Idle = p.Marked.IsZero() || c.now.Sub(p.Marked.Add(-c.pool.Drain)) > c.work
		if !p.Leaving {
			staying++
		}
	}
	c.pods = kept
	for ; staying < c.want; staying++ {
		c.add()
	}
	for i := len(c.pods) - 1; i >= 0 && staying > c.want; i-- {
		if !c.pods[i].Leaving {
			c.delete(c.pods[i])
			staying--
		}
	}
}

// look is one decision and what comes of it.
func (c *cluster) look() {
	seen, serving := Seen{Answers: c.answer}, 0
	for _, p := range c.pods {
		seen.Pods = append(seen.Pods, p.Pod)
		if p.serves() {
			serving++
		}
	}
	c.least = min(c.least, serving)
	next, acts, events := Next(&c.pool, c.state, seen, c.now)
	c.state = next
	for _, e := range events {
		c.events = append(c.events, strings.TrimSpace(e.Pod+" "+e.Kind+": "+e.Text))
	}
	for _, a := range acts {
		c.act(a)
	}
}

func (c *cluster) act(a Act) {
	status := http.StatusNotFound
	for _, p := range c.pods {
		if p.UID != a.Pod.UID {
			continue
		}
		switch a.Kind {
		case Ask, Evict:
			if status = c.budget; status == http.StatusCreated && a.Kind == Evict {
				c.delete(p)
			}
		case Mark, Unmark:
			if status = c.marks; status == http.StatusOK {
				p.Marked = a.Until
			}
		}
	}
	c.answer[Key{a.Kind, a.Pod.UID}] = Answer{At: c.now, Status: status, Message: "told so"}
}

// run lets time pass.
func (c *cluster) run(d time.Duration) {
	for end := c.now.Add(d); c.now.Before(end); {
		c.live()
		c.look()
	}
}

// ends runs until the rotation has ended, and checks how.
func (c *cluster) ends(state Phase, reason string, done int) {
	c.Helper()
	for range 4 * 3600 {
		c.live()
		c.look()
		if r := c.state.Rotation; r != nil && r.State != Running {
			if r.State != state || !strings.Contains(r.Reason, reason) || len(r.Done) != done {
				c.Fatalf("the rotation is %s %q after %d pods; want %s %q after %d\n%s", r.State, r.Reason, len(r.Done), state, reason, done, strings.Join(c.events, "\n"))
			}
			c.run(time.Minute)
			for _, p := range c.pods {
				if !p.Marked.IsZero() && !p.Leaving {
					c.Errorf("%s is still marked", p.Name)
				}
			}
			return
		}
	}
	c.Fatalf("the rotation does not end: %+v", c.state.Rotation)
}

// TestRotatesByTheClock replaces each pod once, one at a time, at the scheduled hour.
func TestRotatesByTheClock(t *testing.T) {
	c := newCluster(t, 4)
	c.run(59 * time.Minute)
	if c.state.Rotation != nil {
		t.Fatalf("a rotation began before its time: %+v", c.state.Rotation)
	}
	c.ends(Done, "", 4)
	if c.least != 3 || c.made != 8 {
		t.Errorf("%d pods served at least, want 3; %d were made, want 8", c.least, c.made)
	}
	c.run(22 * time.Hour)
	if c.state.Counter != 1 {
		t.Errorf("%d rotations in a day", c.state.Counter)
	}
}

// TestHalts has whatever goes wrong end the rotation with its reason, and leave the pods
// that had no turn as they were.
func TestHalts(t *testing.T) {
	for _, one := range []struct {
		name, reason string
		set          func(*cluster)
		done, made   int
	}{
		{"a budget without room", "its PodDisruptionBudget allows no eviction now: told so", func(c *cluster) { c.budget = 429 }, 0, 3},
		{"two budgets", "two PodDisruptionBudgets", func(c *cluster) { c.budget = 500 }, 0, 3},
		{"no right to evict", "may not evict it: told so", func(c *cluster) { c.budget = 403 }, 0, 3},
		{"no right to mark", "could not be marked: told so", func(c *cluster) { c.marks = 403 }, 0, 3},
		{"no server", "does not evict it (0)", func(c *cluster) { c.budget = 0 }, 0, 3},
		{"a successor that is never ready", "vllm-04 is not ready", func(c *cluster) { c.broken = true }, 0, 4},
		{"a successor that restarts", "vllm-04, which took the place of vllm-01, was started again", func(c *cluster) { c.crash = true }, 0, 4},
		{"a successor that no door reaches", "vllm-04 gets no requests: ejected", func(c *cluster) { c.deaf = true }, 0, 4},
		{"min_ready", "2 other pods serve, and min_ready is 3", func(c *cluster) { c.pool.MinReady = 3 }, 0, 3},
	} {
		t.Run(one.name, func(t *testing.T) {
			c := newCluster(t, 3)
			one.set(c)
			c.ends(Halted, one.reason, one.done)
			if c.made != one.made || c.least < 2 {
				t.Errorf("%d pods were made, want %d; %d served at least", c.made, one.made, c.least)
			}
		})
	}
}

// TestGoesOn has a rotation live through whatever passes by itself.
func TestGoesOn(t *testing.T) {
	for _, one := range []struct {
		name string
		set  func(*cluster)
		upon func(*cluster) bool // when the change comes
		then func(*cluster)
	}{
		{"a budget that is used up for a while", func(c *cluster) { c.budget = 429 }, func(c *cluster) bool { return c.state.Rotation.Why != "" }, func(c *cluster) {
			c.run(10 * time.Minute)
			c.budget = 201
		}},
		{"requests that do not end", func(c *cluster) { c.work = time.Hour }, nil, nil},
		{"somebody deletes the pod whose turn it is", nil, func(c *cluster) bool { return stageIs(c, Draining) }, func(c *cluster) { c.delete(c.pods[0]) }},
		{"somebody deletes a pod that waits for its turn", nil, func(c *cluster) bool { return stageIs(c, Draining) }, func(c *cluster) { c.delete(c.pods[2]) }},
		{"somebody deletes the successor", nil, func(c *cluster) bool { return stageIs(c, Proving) }, func(c *cluster) { c.delete(c.pods[len(c.pods)-1]) }},
		{"the owner wants fewer", nil, func(c *cluster) bool { return stageIs(c, Replacing) }, func(c *cluster) { c.want = 2 }},
		{"the owner wants more", nil, func(c *cluster) bool { return stageIs(c, Draining) }, func(c *cluster) { c.want = 5 }},
		{"the API server is away", nil, func(c *cluster) bool { return stageIs(c, Evicting) }, func(c *cluster) {
			c.budget = 0
			c.run(5 * time.Minute)
			c.budget = 201
		}},
	} {
		t.Run(one.name, func(t *testing.T) {
			c := newCluster(t, 3)
			if one.set != nil {
				one.set(c)
			}
			c.run(61 * time.Minute)
			if one.upon != nil {
				for n := 0; c.state.Rotation == nil || !one.upon(c); n++ {
					if n == 3600 {
						t.Fatalf("it does not come to that: %+v", c.state.Rotation)
					}
					c.live()
					c.look()
				}
				one.then(c)
			}
			before := c.state.Rotation.State
			for range 7200 {
				if c.live(); before == Running {
					c.look()
				}
				before = c.state.Rotation.State
			}
			r := c.state.Rotation
			if r.State != Done || c.made < 5 {
				t.Fatalf("it is %s: %s; %d pods were made\n%s", r.State, r.Reason, c.made, strings.Join(c.events, "\n"))
			}
			for _, p := range c.pods {
				if !p.Marked.IsZero() {
					t.Errorf("%s is still marked", p.Name)
				}
			}
		})
	}
}

func stageIs(c *cluster, s Stage) bool {
	return c.state.Rotation.Turn != nil && c.state.Rotation.Turn.Stage == s
}

// TestOwnersRollout begins no turn while the pool's owner replaces pods itself.
func TestOwnersRollout(t *testing.T) {
	c := newCluster(t, 4)
	c.run(58 * time.Minute)
	c.delete(c.pods[0])
	c.run(3 * time.Minute)
	if r := c.state.Rotation; r == nil || r.Turn != nil || !strings.Contains(r.Why, "vllm-05 is not ready") {
		t.Fatalf("%+v", r)
	}
	c.ends(Done, "", 4)
}

// TestLostState has a mark that no turn owns taken off: the Lease was deleted.
func TestLostState(t *testing.T) {
	c := newCluster(t, 3)
	c.work = time.Hour
	c.run(62 * time.Minute)
	if !stageIs(c, Draining) || c.pods[0].Marked.IsZero() {
		t.Fatalf("%+v", c.state.Rotation)
	}
	c.state = State{}
	c.run(10 * time.Second)
	if !c.pods[0].Marked.IsZero() {
		t.Error("the mark stays")
	}
}

// TestCommands has an operator begin, end and continue a rotation.
func TestCommands(t *testing.T) {
	c := newCluster(t, 3)
	c.run(time.Second)
	seen := []Pod{c.pods[0].Pod, c.pods[1].Pod, c.pods[2].Pod}
	var err error
	if c.state, err = Continue(c.state); err == nil {
		t.Error("nothing is continued")
	}
	if _, err = Rotate(c.state, seen, []string{"nobody"}, c.now); err == nil {
		t.Error("a pod that is not there is rotated")
	}
	if c.state, err = Rotate(c.state, seen, []string{"vllm-02"}, c.now); err != nil {
		t.Fatal(err)
	}
	if _, err = Rotate(c.state, seen, nil, c.now); err == nil {
		t.Error("two rotations at once")
	}
	c.ends(Done, "", 1)
	if c.pods[0].Name != "vllm-01" || c.pods[1].Name != "vllm-03" {
		t.Errorf("the pods are %s, %s; want vllm-02 replaced", c.pods[0].Name, c.pods[1].Name)
	}
	c.broken = true
	if c.state, err = Rotate(c.state, []Pod{c.pods[0].Pod, c.pods[1].Pod}, nil, c.now); err != nil {
		t.Fatal(err)
	}
	c.ends(Halted, "ready_timeout", 0)
	c.broken = false
	c.run(10 * time.Minute)
	if c.state, err = Continue(c.state); err != nil {
		t.Fatal(err)
	}
	c.ends(Done, "", 1)
	if c.state, err = Rotate(c.state, []Pod{c.pods[0].Pod}, nil, c.now); err != nil {
		t.Fatal(err)
	}
	c.run(5 * time.Second)
	if c.state, err = Abort(c.state, "operator", c.now); err != nil {
		t.Fatal(err)
	}
	c.ends(Halted, "aborted by operator", 0)
}

// TestSeeds holds the laws in whatever order things go wrong: not more than one pod is out by
// our act, every rotation ends, and no mark stays.
func TestSeeds(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c := newCluster(t, 1+rng.IntN(5))
		for range 3 * 3600 {
			switch rng.IntN(1500) {
			case 0:
				c.budget = []int{201, 429, 0, 201, 500}[rng.IntN(5)]
			case 1:
				c.marks = []int{200, 0, 200}[rng.IntN(3)]
			case 2:
				c.broken = rng.IntN(3) == 0
			case 3:
				c.crash = rng.IntN(3) == 0
			case 4:
				c.want = 1 + rng.IntN(5)
			case 5:
				c.work = time.Duration(rng.IntN(900)) * time.Second
			}
			c.live()
			c.look()
			marked := 0
			for _, p := range c.pods {
				if !p.Marked.IsZero() && !p.Leaving {
					marked++
				}
			}
			if marked > 1 {
				t.Fatalf("seed %d: %d pods are drained at once", seed, marked)
			}
		}
		c.budget, c.marks, c.broken, c.crash, c.work = 201, 200, false, false, time.Minute
		c.run(3 * time.Hour)
		if r := c.state.Rotation; r == nil || r.State == Running {
			t.Errorf("seed %d: %+v", seed, r)
		}
		for _, p := range c.pods {
			if !p.Marked.IsZero() {
				t.Errorf("seed %d: %s is still marked", seed, p.Name)
			}
		}
	}
}
