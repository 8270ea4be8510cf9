package main

import (
	"strings"
	"testing"

	"roundhouse/configs"
)

func TestCheckUsers(t *testing.T) {
	f := func(kind, user string, root bool, want string) {
		t.Helper()
		err := checkUsers([]configs.Plugin{{Name: "p", Kind: kind, User: user}}, root)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s as %q, root %t: got %v; want %q", kind, user, root, err, want)
		}
	}
	f("filter", "", false, "")
	f("driver", "nobody", true, "")
	f("driver", "nobody", false, "only root")
	f("filter", "nobody", true, "as its own user")
	f("policy", "nobody", false, "as its own user")
}
