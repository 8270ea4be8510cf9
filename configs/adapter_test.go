package configs

import (
	"slices"
	"strings"
	"testing"
)

// TestAdapterBlocks reads adapters, has engines take them, and refuses what no engine
// takes.
func TestAdapterBlocks(t *testing.T) {
	read := func(pool string) (*Config, error) {
		return Parse("f.hcl", []byte(`pool "chat" {`+pool+"}\n"), nil)
	}
	c, err := read(`
  engine {
    served_model_name = ["base"]
    args = ["--max-lora-rank", "32"]
  }
  adapter "sql-v2" { path = "/adapters/sql-v2" }
  adapter "tweets" { path = "org/tweets" }
`)
	if err != nil {
		t.Fatal(err)
	}
	p := &c.Pools[0]
	if want := []Adapter{{"sql-v2", "/adapters/sql-v2"}, {"tweets", "org/tweets"}}; !slices.Equal(p.Adapters, want) {
		t.Errorf("adapters %v; want %v", p.Adapters, want)
	}
	e, _ := p.Of(p.Workers[0])
	if want := []string{"--max-lora-rank", "32", "--enable-lora", "--max-cpu-loras", "4"}; !slices.Equal(e.Args, want) || e.Environment[RuntimeAdapters] != "True" {
		t.Errorf("args %q, environment %q; want args %q", e.Args, e.Environment, want)
	}
	if len(p.Engine.Args) != 2 || p.Engine.Environment != nil {
		t.Errorf("the pool's own engine has changed: %+v", p.Engine)
	}
	p.Engine.Args = []string{"--enable_lora", "--max-loras=2"}
	p.Engine.Environment = map[string]string{RuntimeAdapters: "False"}
	if e, _ = p.Of(p.Workers[0]); len(e.Args) != 2 || e.Environment[RuntimeAdapters] != "False" {
		t.Errorf("what is written does not hold: %+v", e)
	}
	for text, want := range map[string]string{
		`adapter "a" {}`:               `adapter "a" has no path`,
		`adapter "a,b" { path = "x" }`: "without commas",
		"engine {\n served_model_name = [\"m\"]\n }\n adapter \"m\" { path = \"x\" }":              "the name of the model itself",
		"adapter \"a\" { path = \"x\" }\n adapter \"a\" { path = \"y\" }":                          `adapter "a" is there twice`,
		"driver = \"kubernetes\"\n selector = \"a=b\"\n port = 1\n adapter \"a\" { path = \"x\" }": "no supervisor loads adapters into pods",
	} {
		if _, err := read("\n" + text + "\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}

// TestRouteCanary reads the model that a route has on trial, and refuses what cannot be
// tried.
func TestRouteCanary(t *testing.T) {
	const pool = "pool \"p\" {\n  engine {\n    served_model_name = [\"base\"]\n  }\n  adapter \"v2\" {\n    path = \"/v2\"\n  }\n}\n"
	read := func(route string) (*Config, error) {
		return Parse("f.hcl", []byte(pool+"route \"chat\" {\n"+route+"\n}\n"), nil)
	}
	c, err := read("target \"base\" {}\n canary \"v2\" {}")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Routes[0].Canary; got.Model != "v2" || !slices.Equal(got.Steps, []float64{0.05, 0.25, 0.5}) || got.MinRequests != 200 || got.Hold.String() != "10m" || !got.Promote {
		t.Errorf("the usual canary is %+v", got)
	}
	c, err = read("target \"base\" {}\n canary \"v2\" {\n steps = [0.01, 1]\n promote = false\n min_requests = 5\n hold = \"0s\"\n }")
	if err != nil || c.Routes[0].Canary.Promote || c.Routes[0].Canary.Steps[1] != 1 || c.Routes[0].Canary.Hold != 0 {
		t.Errorf("%v: %+v", err, c)
	}
	for text, want := range map[string]string{
		"target \"base\" {}\n canary \"base\" {}":                                     "a target of the route, too",
		"target \"base\" {}\n canary \"v3\" {}":                                       `no pool serves "v3"`,
		"target \"base\" {\n weight = 0\n }\n canary \"v2\" {}\n fallback = \"base\"": "nothing to hold it against",
		"target \"base\" {}\n canary \"chat\" {}":                                     `no pool serves "chat"`,
		"target \"base\" {}\n canary \"v2\" {}\n canary \"v1\" {}":                    "one model is on trial at a time",
		"target \"base\" {}\n canary \"v2\" {\n steps = []\n }":                       "steps is empty",
		"target \"base\" {}\n canary \"v2\" {\n steps = [0.5, 0.5]\n }":               "above the one before",
		"target \"base\" {}\n canary \"v2\" {\n steps = [0, 0.5]\n }":                 "the first above 0",
		"target \"base\" {}\n canary \"v2\" {\n steps = [2]\n }":                      "a number from 0 to 1",
		"target \"base\" {}\n canary \"v2\" {\n steps = [\"5 %\"]\n }":                "a list of numbers",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}
