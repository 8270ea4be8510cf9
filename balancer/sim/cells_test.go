package sim

import (
	"slices"
	"testing"
)

// TestOrder is the short form of the comparison of routers: near the knee, whatever runs
// out first, none that knows nothing of the engines has more first tokens in time than
// the door, and none a 99th percentile that is better by a sixth: shorter ones go first,
// which the longest pay for.
func TestOrder(t *testing.T) {
	for _, c := range []Cell{
		{Traffic: "long-short", Bound: "kv", Share: 0.95, Age: 1}, {Traffic: "long-short", Bound: "both", Share: 0.95, Age: 1},
		{Traffic: "long-short", Bound: "seats", Share: 0.95, Age: 1}, {Traffic: "reasoning", Bound: "kv", Share: 1.05, Age: 1},
		{Traffic: "sessions", Bound: "kv", Share: 1.3, Age: 5}, {Traffic: "prefixes", Bound: "kv", Share: 0.95, Age: 1},
		{Traffic: "prefixes", Bound: "prompts", Share: 1.1, Age: 1}, {Traffic: "prefixes", Bound: "prompts", Share: 0.95, Age: 5},
	} {
		var share, tail = map[string]float64{}, map[string]float64{}
		for seed := uint64(1); seed <= 2; seed++ {
			s, err := c.Scenario(20, seed)
			if err != nil {
				t.Fatal(err)
			}
			for _, make := range Policies() {
				p := make()
				if slices.Contains([]string{"least_kv", "least request", "power of two", "round robin", "cache aware"}, p.Name()) {
					o := Run(&s, p, seed)
					share[o.Policy] += o.Goodput / 2
					tail[o.Policy] += o.P99 / 2
				}
			}
		}
		for name := range share {
			if share[name] > share["least_kv"]+0.01 || tail[name] < 0.85*tail["least_kv"]-0.02 {
				t.Errorf("%s: %s has %.1f %% in time, p99 %.2f s; the door %.1f %%, %.2f s", c, name, 100*share[name], tail[name], 100*share["least_kv"], tail["least_kv"])
			}
		}
	}
}
