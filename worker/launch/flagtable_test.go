package launch

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTable holds the table to the setters: a flag that is done has one, and
// one that is not says why.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range flagSpecs() {
		for _, name := range append(s.also, "--"+s.name) {
			if seen[name] {
				t.Errorf("%s stands twice in flags.txt", name)
			}
			seen[name] = true
		}
		if set := setters[s.name] != nil || s.name == "config"; set != (s.verdict == "done") {
			t.Errorf("--%s is %s, and has a setter: %v", s.name, s.verdict, set)
		}
		if !slices.Contains([]takes{takesValue, takesMaybe, takesSwitch, takesList, takesJSON}, s.takes) || !slices.Contains([]string{"done", "same", "only", "no"}, s.verdict) {
			t.Errorf("--%s: takes %q, verdict %q", s.name, s.takes, s.verdict)
		}
		if (s.why == "") != (s.verdict == "done") || (len(s.values) > 0) != (s.verdict == "only") {
			t.Errorf("--%s: %s %v: %q", s.name, s.verdict, s.values, s.why)
		}
	}
	for name := range setters {
		if !seen["--"+name] {
			t.Errorf("--%s is not in flags.txt", name)
		}
	}
}

// vllmFlag is a flag of vLLM's as testdata/flags.py writes it.
type vllmFlag struct {
	Names   []string
	Takes   takes
	Default any
}

// TestVLLMFlags has every flag of vLLM 0.32's by each of its names: it is
// known, and its default is taken.
func TestVLLMFlags(t *testing.T) {
	data, err := os.ReadFile("testdata/vllmflags.json")
	if err != nil {
		t.Fatal(err)
	}
	var flags []vllmFlag
	if err := json.Unmarshal(data, &flags); err != nil || len(flags) != 316 {
		t.Fatalf("%d flags, %v; want the 316 of vLLM 0.32", len(flags), err)
	}
	for _, f := range flags {
		for _, name := range f.Names {
			spec, _, err := findFlag(name)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if spec.takes != f.Takes && (spec.takes != takesJSON || f.Takes != takesValue) {
				t.Errorf("%s takes a %s; vLLM's a %s", name, spec.takes, f.Takes)
			}
			args := []string{name}
			switch v := f.Default.(type) {
			case nil:
				continue
			case bool:
				if args = []string{name}; !v {
					args = []string{"--no-" + strings.TrimPrefix(name, "--")}
				}
				if !strings.HasPrefix(name, "--") {
					continue
				}
			default:
				args = append(args, fmt.Sprint(v))
			}
			if _, err := ParseServe(args, noEnv); err != nil {
				t.Errorf("%v, vLLM's default: %v", args, err)
			}
		}
	}
}

// TestCommands has the commands of llm-scaler: each starts, or says in one
// sentence why not.
func TestCommands(t *testing.T) {
	data, err := os.ReadFile("testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		n++
		command, want, refused := strings.Cut(strings.TrimSpace(line), " => ")
		env := map[string]string{}
		words := strings.Fields(command)
		for !strings.HasPrefix(words[0], "--") {
			name, v, _ := strings.Cut(words[0], "=")
			env[name], words = v, words[1:]
		}
		_, err := ParseServe(words, func(name string) string { return env[name] })
		switch {
		case !refused && err != nil:
			t.Errorf("%s: %v", command, err)
		case refused && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: got %v; want %q", command, err, want)
		}
	}
	if n < 15 {
		t.Fatalf("%d commands were read", n)
	}
}

func TestConfigFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "serve.yaml")
	parse := func(text, args string) (Options, error) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ParseServe(strings.Fields(strings.ReplaceAll(args, "FILE", file)), noEnv)
	}
	f := func(text, args string, want func(Options) any, value any) {
		t.Helper()
		o, err := parse(text, args)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := fmt.Sprint(want(o)); got != fmt.Sprint(value) {
			t.Errorf("%s: got %v; want %v", text, got, value)
		}
	}
	f("model: m\nport: 12323\nmax_num_seqs: 7\n", "--config FILE", func(o Options) any { return []any{o.Model, o.Port, o.MaxSeqs} }, "[m 12323 7]")
	f("model: m\nport: 1\n", "n --config=FILE --port 2", func(o Options) any { return []any{o.Model, o.Port} }, "[n 2]")
	f("served-model-name: [a, b]\napi-key:\n  - x\n", "--config FILE --api-key y", func(o Options) any { return []any{o.ServedNames, o.APIKeys} }, "[[a b] [y]]")
	f("enable-prefix-caching: false\nenable-request-id-headers: yes\n", "--config FILE", func(o Options) any { return []any{o.PrefixCache, o.RequestIDHeaders} }, "[false true]")
	f("speculative-config:\n  method: ngram\n  num_speculative_tokens: 3\nallowed-origins: ['*']\nquantization: null\n", "--config FILE", func(o Options) any { return []any{o.Speculative, o.CORS.Origins} }, "[{ngram 3 5 2} [*]]")
	f("", "--config FILE", func(o Options) any { return o.Model }, "")
	bad := func(text, want string) {
		t.Helper()
		if _, err := parse(text, "--config FILE"); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: got %v; want %q with the file's name", text, err, want)
		}
	}
	bad("prot: 3\n", "line 1: there is no flag --prot")
	bad("port: 1\nmax-num-seqs: x\n", `--max-num-seqs: "x"; want a whole number`)
	bad("- a\n", "want lines of the form flag: value")
	bad("port: [1\n", "yaml")
	bad("enforce-eager: 3\n", "want true or false")
	bad("-tp: 2\n", "there is no flag")
	for args, want := range map[string]string{"--config": "needs a file", "--config a.yaml --config b.yaml": "given twice", "--config a.json": "ends in .yaml", "--config /nowhere.yaml": "no such file"} {
		if _, err := ParseServe(strings.Fields(args), noEnv); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want %q", args, err, want)
		}
	}
}
