package workerid

import "testing"

func TestSplit(t *testing.T) {
	for _, names := range [][2]string{{"chat", "0"}, {"a.b-c_d", "relief"}, {"", ""}} {
		id := Of(names[0], names[1])
		if pool, name := Split(id); pool != names[0] || name != names[1] || Pool(id) != pool {
			t.Errorf("%q is split into %q and %q, of pool %q; want %q", id, pool, name, Pool(id), names)
		}
	}
	if pool, name := Split("chat"); pool != "chat" || name != "" {
		t.Errorf(`"chat" is split into %q and %q; want a pool alone`, pool, name)
	}
}
