package device

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestBind(t *testing.T) {
	tr := newTree(t, 2, 4, 2) // nodes 0: CPUs 0-3, 8-11; 1: 4-7, 12-15
	tr.gpu("0000:18:00.0", "0x8086", "xe", 0, 0)
	tr.gpu("0000:98:00.0", "0x8086", "xe", 1, 1)
	tr.gpu("0000:99:00.0", "0x8086", "i915", -1, 2)
	gpus := GPUs(tr.root)
	all := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	f := func(name string, allowed []int, want Binding) {
		t.Helper()
		g, ok := Named(gpus, name)
		if got := Bind(tr.root, g, allowed); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s, from %v: got %+v, %v; want %+v", name, allowed, got, ok, want)
		}
	}
	f("0000:98:00.0", all, Binding{CPUs: []int{4, 5, 6, 7, 12, 13, 14, 15}, Nodes: []int{1}})
	f("98:00.0", []int{6, 7, 8}, Binding{CPUs: []int{6, 7}, Nodes: []int{1}})
	f("1", []int{4, 5}, Binding{Nodes: []int{1}}) // is there already
	f("0", []int{4, 5}, Binding{Nodes: []int{0}}) // may not run there
	f("0000:99:00.0", all, Binding{})             // the machine does not say where the GPU is
	if _, ok := Named(gpus, ""); ok {
		t.Error("one of three GPUs was taken without a name")
	}
	if g, ok := Named(gpus[:1], ""); !ok || g.PCI != "0000:18:00.0" {
		t.Error("the only GPU needs no name")
	}
	one := newTree(t, 1, 4, 1)
	one.gpu("0000:18:00.0", "0x8086", "xe", 0, 0)
	if got := Bind(one.root, GPUs(one.root)[0], []int{0, 1, 2, 3}); !reflect.DeepEqual(got, Binding{}) {
		t.Errorf("a machine of one node: %+v", got)
	}
}

// Two workers on one device: the second is told who holds it; the lock ends with its holder.
func TestClaim(t *testing.T) {
	node, proc := filepath.Join(t.TempDir(), "renderD128"), t.TempDir()
	if err := os.WriteFile(node, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	plant(t, proc, map[string]string{"4711/fdinfo/5": "drm-client-id:\t3\ndrm-pdev:\t" + testPCI})
	first, err := Claim(node, testPCI, proc)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Claim(node, testPCI, proc)
	want := "another worker (process 4711) computes on 0000:18:00.0 already, and a worker takes a whole GPU: give this one another, or stop that one"
	if err == nil || err.Error() != want {
		t.Errorf("got %v; want %s", err, want)
	}
	first.Close()
	again, err := Claim(node, testPCI, proc)
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	again.Close()
	if _, err := Claim(node+"x", testPCI, proc); err == nil || !strings.Contains(err.Error(), "cannot lock") {
		t.Errorf("got %v", err)
	}
}
