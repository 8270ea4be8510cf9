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

// The door, which faces the network, gets no token of an engine's, and neither it nor
// a worker gets what only the configuration may use.
func TestHandedOn(t *testing.T) {
	environ := []string{"PATH=/bin", "LC_ALL=C", "HF_TOKEN=hf_1", "VLLM_API_KEY=k", "CUDA_VISIBLE_DEVICES=0", "NEOReadDebugKeys=1", "ROUNDHOUSE_ADMIN_TOKEN=t", "AWS_SECRET_ACCESS_KEY=s", "PATHOLOGY=1"}
	f := func(wanted []string, want string) {
		t.Helper()
		if got := strings.Join(handedOn(environ, wanted), " "); got != want {
			t.Errorf("got %s; want %s", got, want)
		}
	}
	f(forAll, "PATH=/bin LC_ALL=C")
	f(forEngines, "PATH=/bin LC_ALL=C HF_TOKEN=hf_1 VLLM_API_KEY=k CUDA_VISIBLE_DEVICES=0 NEOReadDebugKeys=1")
}
