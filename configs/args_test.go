package configs

import (
	"strings"
	"testing"
)

// Flags are changed where they stand, in either form, and added where they do not; secrets
// and comments stay as they were written.
func TestSetArgs(t *testing.T) {
	set := []Flag{{"max-num-seqs", "16"}, {"max-num-batched-tokens", "1024"}}
	f := func(engine, want string) {
		t.Helper()
		src := "pool \"a\" {\n  workers = 1\n}\n# mine\npool \"b\" {\n  workers = 2 # two\n" + engine + "\n}\n"
		out, err := SetArgs("x.hcl", []byte(src), "b", set)
		if err != nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), "workers = 2 # two") || !strings.HasPrefix(string(out), "pool \"a\" {\n  workers = 1\n}\n# mine\n") {
			t.Errorf("%s\nbecame %v\n%s", engine, err, out)
			return
		}
		if _, err := Parse("x.hcl", out, func(string) (string, bool) { return "s", true }); err != nil {
			t.Errorf("%s is no configuration: %v", out, err)
		}
		again, err := SetArgs("x.hcl", out, "b", set)
		if err != nil || string(again) != string(out) {
			t.Errorf("set again: %v\n%s", err, again)
		}
	}
	const both = `"--max-num-seqs", "16", "--max-num-batched-tokens", "1024"`
	f("", "engine {\n    args = ["+both+"]\n  }")
	f("  engine {\n    max_model_len = 8\n  }", "args          = ["+both+"]\n    max_model_len = 8")
	f("  engine {}", "args = ["+both+"]")
	f("  engine {\n    args = []\n  }", "args = ["+both+"]")
	f("  engine {\n    args = [\"--api-key\", env(\"K\")] # kept\n  }", `args = ["--api-key", env("K"), `+both+`] # kept`)
	f("  engine {\n    args = [\"--max-num-seqs\", \"1\", \"--max_num_batched_tokens=64\", \"-x\"]\n  }", `args = ["--max-num-seqs", "16", "--max_num_batched_tokens=1024", "-x"]`)
	f("  engine {\n    args = [\n      \"--max-num-seqs\", # seats\n      \"1\",\n    ]\n  }", "\"--max-num-seqs\", # seats\n      \"16\", \"--max-num-batched-tokens\", \"1024\",")
	refused := func(src, want string) {
		t.Helper()
		if _, err := SetArgs("x.hcl", []byte(src), "b", set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", src, err, want)
		}
	}
	refused("pool \"a\" {}\n", `no pool "b"`)
	refused("pool \"b\" {\n  engine {\n    args = env(\"A\")\n  }\n}\n", "by hand")
	refused("pool \"b\" {\n  engine {\n    args = [\"--max-num-seqs\"]\n  }\n}\n", "has no value")
	refused("pool {", "x.hcl")
}
