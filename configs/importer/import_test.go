package importer

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"roundhouse/configs"
)

var update = flag.Bool("update", false, "write the golden files anew")

// reader reads beside a file, as the command does.
func reader(name string) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) { return os.ReadFile(filepath.Join(filepath.Dir(name), path)) }
}

// golden compares what was made with the file of that name. The folder in
// which the test runs is not part of it.
func golden(t *testing.T, name string, r *Result, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	here, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(string(r.HCL), here, "/srv")
	path := filepath.Join("testdata", name+".hcl")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
	if again, err := configs.Format(name, []byte(got)); err != nil || string(again) != got {
		t.Errorf("%s is not formatted: %v", name, err)
	}
}

func TestFiles(t *testing.T) {
	f := func(golden_, file string) {
		t.Helper()
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Import(file, src, Options{Read: reader(file)})
		golden(t, golden_, r, err)
	}
	f("two_engines", "testdata/two_engines/docker-compose.yml")
	f("two_engines_proxy", "testdata/two_engines/haproxy.cfg")
	f("mixed", "testdata/mixed/compose.yaml")
	f("mixed_proxy", "testdata/mixed/nginx.conf")
	f("brought", "testdata/brought/docker-compose.yml")
	f("brought_haproxy", "testdata/brought/haproxy.cfg")
	f("brought_nginx", "testdata/brought/nginx.conf")
}

func TestCommands(t *testing.T) {
	f := func(name, line string, o Options) {
		t.Helper()
		r, err := Command([]string{line}, o)
		golden(t, name, r, err)
	}
	f("dp_own_engine", "VLLM_LOGGING_LEVEL=INFO ZE_AFFINITY_MASK=0,1,2,3 vllm serve /llm/models/Qwen3-8B --served_model_name model --dp 4 --port 8000 --quantization sym_int4 --gpu-memory-util=0.9 --enforce-eager --block-size 64", Options{})
	f("dp_containers", "vllm serve Qwen/Qwen3-32B -dp2 -tp 4 --api-key sk-old --speculative-config '{\"method\": \"ngram\"}'", Options{Image: "vllm/vllm-openai:v0.21.0"})
}

func TestRefused(t *testing.T) {
	f := func(name, src, want string) {
		t.Helper()
		_, err := Import(name, []byte(src), Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want it to say %q", name, err, want)
		}
	}
	f("x.txt", "hello", "neither a compose file")
	f("compose.yaml", "services: [", "compose.yaml")
	f("compose.yaml", "a: b", "it has no services")
	f("compose.yaml", "services:\n  web:\n    image: nginx", "nothing in it serves a model")
	f("compose.yaml", "services:\n  v:\n    image: vllm:1\n    command: --port x", "--port x: not a number")
	f("compose.yaml", "services:\n  v:\n    image: vllm:1\n    command: '\"'", "is not closed")
	f("compose.yaml", "services:\n  v:\n    image: vllm:1\n    shm_size: lots", "shm_size")
	f("compose.yaml", "services:\n  v:\n    image: vllm:1\n    scale: 999999999", "at most 4096 workers")
	f("haproxy.cfg", "backend a\n  mode tcp\n", "no server in it")
	f("big.yaml", strings.Repeat("# x\n", 1<<19), "larger than 1MiB")
	if _, err := Command([]string{"llama-server", "-m", "x"}, Options{}); err == nil || !strings.Contains(err.Error(), "no `vllm serve") {
		t.Errorf("got %v", err)
	}
	if _, err := Command([]string{"vllm serve m -tp 2"}, Options{}); err == nil || !strings.Contains(err.Error(), "--image") {
		t.Errorf("got %v", err)
	}
}

func TestSplit(t *testing.T) {
	f := func(line string, want ...string) {
		t.Helper()
		got, err := split(line)
		if err != nil || strings.Join(got, "|") != strings.Join(want, "|") || len(got) != len(want) {
			t.Errorf("split(%q) = %q, %v; want %q", line, got, err, want)
		}
	}
	f(`a 'b c' "d \"e\"" f\ g ''`, "a", "b c", `d "e"`, "f g", "")
	f("a \\\n b", "a", "b")
	f("")
}

// FuzzImport: whatever the bytes, Import returns a valid configuration or
// says why not.
func FuzzImport(f *testing.F) {
	for _, file := range []string{"testdata/two_engines/docker-compose.yml", "testdata/two_engines/haproxy.cfg", "testdata/mixed/compose.yaml", "testdata/mixed/nginx.conf"} {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(file, src)
	}
	f.Fuzz(func(t *testing.T, name string, src []byte) {
		r, err := Import(name, src, Options{})
		if (r == nil) == (err == nil) {
			t.Fatalf("result %v and error %v", r, err)
		}
		if err != nil && strings.Contains(err.Error(), "cannot be read:") {
			t.Fatal(err) // it wrote what is no HCL
		}
	})
}
