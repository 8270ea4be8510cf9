package docker

import (
	"context"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"roundhouse/supervisor/driver/drivertest"
)

// movedHouse is a house whose two workers run what a registry has under a tag.
type movedHouse struct{ *house }

// forget removes all that was pulled of a name. Most of it has lost the tag by then.
func (l *lab) forget(t *testing.T, name string) {
	t.Helper()
	list, err := l.client.ImageList(context.Background(), image.ListOptions{Filters: filters.NewArgs(filters.Arg("reference", name))})
	if err != nil || len(list) == 0 {
		t.Errorf("%d images of %s: %v", len(list), name, err)
	}
	for _, i := range list {
		if _, err := l.client.ImageRemove(context.Background(), i.ID, image.RemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	}
}

// runs are which of the published images the two containers are made of.
func (h *movedHouse) runs() string {
	h.t.Helper()
	var out []string
	for _, name := range []string{"roundhouse-moved-1", "roundhouse-moved-2"} {
		c, err := h.lab.client.ContainerInspect(h.t.Context(), name)
		if err != nil {
			return err.Error()
		}
		out = append(out, c.Config.Labels["of"])
	}
	return strings.Join(out, " ")
}

// rotate rotates the pool and waits for how that ends.
func (h *movedHouse) rotate(want string) {
	h.t.Helper()
	if out, err := h.run("rotate", "moved", "--no-wait"); err != nil {
		h.t.Fatal(err, out)
	}
	h.rolled(want)
}

// A tag that moves is found by the preparation of a rotation, and is a roll-out: an image
// that does not start reaches one worker, which goes back to the image that ran before,
// though no name stands for that any more; a neighbour that crashes comes back on it; so
// it is after the supervisor was restarted. The next image that works gets a canary.
func TestMovedTag(t *testing.T) {
	if *rootless {
		t.Skip("the test's registry is on this machine's loopback, which a rootless engine does not reach")
	}
	l := engineFor(t)
	data := layer(t)
	r := newRegistry(t, data)
	name := strings.TrimPrefix(r.URL, "http://") + "/moved"
	block := strings.Replace(poolOf("moved", name+":1", "canary {\n    share = 0.5\n    min_requests = 5\n  }"), `"never"`, `"always"`, 1)
	t.Cleanup(func() { l.forget(t, name) }) // after the house's own
	h := &movedHouse{houseFor(t, "moved", block)}
	h.until("1 ready 1 ready")
	stop := h.load()
	first := h.runs()

	r.publish(t, data, "bad", "--exit", "3")
	h.rotate("exit status 3")
	if got := h.runs(); got != first {
		t.Errorf("after the roll-back they run %q, and ran %q", got, first)
	}
	for i, name := range []string{"roundhouse-moved-2", "roundhouse-moved-1"} {
		if i == 1 {
			h.restart()
		}
		was := h.states()
		if err := l.client.ContainerKill(t.Context(), name, "KILL"); err != nil {
			t.Fatal(err)
		}
		drivertest.Until(t, "it is back", func() bool { return h.states() != was && strings.Count(h.states(), "ready") == 2 })
		if got := h.runs(); got != first {
			t.Errorf("after %s was killed they run %q, and ran %q", name, got, first)
		}
	}

	r.publish(t, data, "better")
	h.rotate("done")
	if got := h.runs(); got != "better better" {
		t.Errorf("after the roll-out they run %q", got)
	}
	out, err := h.run("events", "--json")
	if err != nil || strings.Count(out, `"canary"`) < 2 || !strings.Contains(out, "stands for sha256:") {
		t.Errorf("%v; the events are %s", err, out)
	}
	t.Logf("%s; %d answers meanwhile, none lost", h.rotation(), stop())
	if out, err := h.run("ps"); err != nil || strings.Contains(out, "sha256:") {
		t.Errorf("%v; ps shows %s", err, out)
	}
}

// An image that is gone is no end: its name is asked anew.
func TestImageGone(t *testing.T) {
	l := engineFor(t)
	name := strings.Replace(testImage, "worker", "gone", 1)
	l.importWorker(t, name, "first")
	t.Cleanup(func() { // after the house's own
		if _, err := l.client.ImageRemove(context.Background(), name, image.RemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	})
	h := houseFor(t, "gone", poolOf("gone", name, ""))
	h.until("1 ready 1 ready")
	old, err := l.client.ImageInspect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	l.importWorker(t, name, "second")
	if out, err := h.run("stop", "gone/1"); err != nil {
		t.Fatal(err, out)
	}
	if out, err := h.run("stop", "gone/2"); err != nil {
		t.Fatal(err, out)
	}
	h.until("1 stopped 1 stopped")
	if _, err := l.client.ImageRemove(t.Context(), old.ID, image.RemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	for _, worker := range []string{"gone/1", "gone/2"} {
		if out, err := h.run("start", worker); err != nil {
			t.Fatal(err, out)
		}
	}
	drivertest.Until(t, "both serve", func() bool { return strings.Count(h.states(), "ready") == 2 })
	for _, container := range []string{"roundhouse-gone-1", "roundhouse-gone-2"} {
		c, err := l.client.ContainerInspect(t.Context(), container)
		if err != nil || c.Config.Labels["of"] != "second" {
			t.Errorf("%s runs the image %q, %v", container, c.Config.Labels["of"], err)
		}
	}
}
