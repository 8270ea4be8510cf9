package balancer

import (
	"io"
	"net/netip"
	"testing"
	"time"

	"roundhouse/balancer/fleet"
	"roundhouse/balancer/keyring"
	"roundhouse/balancer/resume"
	"roundhouse/configs"
)

// TestAccessLineAllocatesNothing: a line costs no garbage, whichever form it has.
func TestAccessLineAllocatesNothing(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		log := &configs.Log{Format: format}
		a := &asked{id: "one", path: "/v1/chat/completions", model: "Qwen/Qwen3-8B", pool: fleet.NewPool("p"), key: &keyring.Key{Name: "team"}, wall: time.Now(), client: netip.MustParseAddr("2001:db8::1")}
		r := &record{worker: "p/1", status: 200, outcome: "ok", usage: resume.Usage{Known: true, Prompt: 10, Generated: 5}, first: 1e6, ended: 2e6}
		if n := testing.AllocsPerRun(200, func() { logAccess(io.Discard, log, a, r) }); n > 0.5 {
			t.Errorf("%s: %v allocations a line", format, n)
		}
	}
}
