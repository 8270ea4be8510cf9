package configs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// environment is the environment of all tests here.
func environment(name string) (string, bool) {
	v, ok := map[string]string{
		"HOME": "/home/me", "A_KEY": "hush-key-1", "ROUNDHOUSE_ADMIN_TOKEN": "hush-token-1", "ROUNDHOUSE_READ_TOKEN": "hush-token-2", "PORT": "8010",
	}[name]
	return v, ok
}

func parse(t *testing.T, src string) *Config {
	t.Helper()
	cfg, err := Parse("test.hcl", []byte(src), environment)
	if err != nil {
		t.Fatalf("unexpected error:\n%v", err)
	}
	return cfg
}

func TestShippedFiles(t *testing.T) {
	files, err := filepath.Glob("*.hcl")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if _, err := Load(file, environment); err != nil {
			t.Errorf("%s:\n%v", file, err)
		}
		src, _ := os.ReadFile(file)
		out, err := Format(file, src)
		if err != nil || string(out) != string(src) {
			t.Errorf("%s is not formatted (roundhouse fmt configs/%s) %v", file, file, err)
		}
	}
}

// TestFullIsFull: full.hcl holds every attribute that a decoder asks for, so
// that it stays the place to look things up.
func TestFullIsFull(t *testing.T) {
	src, err := os.ReadFile("full.hcl")
	if err != nil {
		t.Fatal(err)
	}
	asked := regexp.MustCompile(`b\.?[a-z]*\(?(?:b, )?"([a-z0-9_]+)"`)
	for _, file := range []string{"decode.go", "decode_pool.go"} {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range asked.FindAllStringSubmatch(string(code), -1) {
			if !regexp.MustCompile(`(?m)^\s*` + m[1] + `\s*[={"]`).Match(src) {
				t.Errorf("full.hcl has no %s", m[1])
			}
		}
	}
}

// TestDocs validates every hcl block of the documentation. A block may be a
// part of a file: a pool is lent to one that has none, and "…" stands for
// digits.
func TestDocs(t *testing.T) {
	files, _ := filepath.Glob("../docs/*.md")
	files = append(files, "../README.md")
	fence := regexp.MustCompile("(?ms)^```hcl\n(.*?)^```")
	anything := func(name string) (string, bool) { return "value-of-" + name, true }
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, at := range fence.FindAllSubmatchIndex(text, -1) {
			block := strings.ReplaceAll(string(text[at[2]:at[3]]), `"…"`, `"`+strings.Repeat("0", 64)+`"`)
			if !regexp.MustCompile(`(?m)^pool `).MatchString(block) {
				block += "\npool \"lent\" {}\n"
			}
			line := strings.Count(string(text[:at[2]]), "\n")
			if _, err := Parse(fmt.Sprintf("%s (the block after line %d)", file, line), []byte(block), anything); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestDefaultsAndResolution(t *testing.T) {
	cfg := parse(t, `
door { policy = "fastest" }
pool "a" { workers = 3 }
pool "b" {
  policy = "round_robin"
  rotation { schedule = "0 3 * * *" }
}
pool "c" {
  driver = "static"
  worker "x" { url = "http://127.0.0.1:1" }
}`)
	a, b, c := cfg.Pools[0], cfg.Pools[1], cfg.Pools[2]
	if a.Driver != "process" || a.Policy != "fastest" || a.Devices != "auto" || a.GPUsPerWorker != 1 {
		t.Errorf("pool a: %+v", a)
	}
	if len(a.Workers) != 3 || a.Workers[0].Name != "1" || a.Workers[2].Name != "3" || a.Rotation.MinReady != 2 {
		t.Errorf("pool a: workers %+v, min_ready %d", a.Workers, a.Rotation.MinReady)
	}
	if a.Rotation.MemoryGrowth != 0 || b.Rotation.MemoryGrowth != 0.2 || b.Rotation.Slowdown != 0.3 {
		t.Error("early turns are for pools with a schedule")
	}
	if b.Policy != "round_robin" || len(b.Workers) != 1 || b.Rotation.MinReady != 0 {
		t.Errorf("pool b: %+v", b)
	}
	if b.Rotation.DrainTimeout.Std() != 10*time.Minute || b.Rotation.StopGrace.Std() != time.Minute {
		t.Errorf("pool b: %+v", b.Rotation)
	}
	if c.Workers[0].URL != "http://127.0.0.1:1" || c.Scrape.Interval.Std() != 250*time.Millisecond {
		t.Errorf("pool c: %+v", c)
	}
	d := cfg.Door
	if d.Listen != ":8000" || d.Memory != 4<<30 || d.Limits.Body != 64<<20 || d.Queue.MaxRequests != 2048 || !d.Resume.Enabled {
		t.Errorf("door: %+v", d)
	}
	if cfg.Admin.Listen != "127.0.0.1:8001" || cfg.Supervisor.Parallel != 1 || !cfg.Log.Access {
		t.Errorf("%+v", cfg)
	}
}

// A GPU is named as Linux names it: behind a VMD or in some virtual machines its
// domain has more than four digits.
func TestGPUNames(t *testing.T) {
	for _, gpu := range []string{"0000:18:00.0", "10000:E1:00.0", "ffffffff:e1:1f.7", "GPU-8ffd5a36-b1a4-4d7a-a7c8-9ed17c1f2d3a"} {
		cfg := parse(t, fmt.Sprintf("pool \"a\" {\n  worker \"w\" { gpus = [%q] }\n}", gpu))
		if got := cfg.Pools[0].Workers[0].GPUs; len(got) != 1 || !strings.EqualFold(got[0], gpu) {
			t.Errorf("%s is read as %v", gpu, got)
		}
	}
}

func TestStateDir(t *testing.T) {
	f := func(env map[string]string, root bool, want string) {
		t.Helper()
		if got := defaultStateDir(func(n string) (string, bool) { v, ok := env[n]; return v, ok }, root); got != want {
			t.Errorf("got %s; want %s", got, want)
		}
	}
	f(map[string]string{"HOME": "/home/me"}, true, "/var/lib/roundhouse")
	f(map[string]string{"HOME": "/home/me"}, false, "/home/me/.local/state/roundhouse")
	f(map[string]string{"HOME": "/home/me", "XDG_STATE_HOME": "/s"}, false, "/s/roundhouse")
	f(map[string]string{"XDG_STATE_HOME": "relative"}, false, filepath.Join(os.TempDir(), "roundhouse"))
}

// TestPlainText: what editors leave in a file does no harm.
func TestPlainText(t *testing.T) {
	cfg := parse(t, "\xef\xbb\xbf# from Windows\r\npool \"a\" {\r\n\tworkers = 2\r\n}\r\n")
	if len(cfg.Pools[0].Workers) != 2 {
		t.Fatalf("%+v", cfg.Pools)
	}
}

func TestFunctions(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "c.hcl")
	src := `
door { listen = "127.0.0.1:${env("PORT")}" }
admin { token = file("token") }
pool "a" { }
`
	if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := Load(path, environment)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Door.Listen != "127.0.0.1:8010" || cfg.Admin.Token.Reveal() != "from-file" {
		t.Errorf("listen %q, token %q", cfg.Door.Listen, cfg.Admin.Token.Reveal())
	}
}

func TestWarnings(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c.hcl")
	src := "pool \"a\" {\n  rotation {\n    schedule = \"* 3 * * *\"\n  }\n}\n"
	if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	cfg, err := Load(path, environment)
	if err != nil {
		t.Fatal(err)
	}
	all := cfg.Warnings.Error()
	for _, want := range []string{`begins again after 1m; once a night is "0 3 * * *"`, "c.hcl:3:5", "chmod o-w"} {
		if !strings.Contains(all, want) {
			t.Errorf("warnings do not say %q:\n%s", want, all)
		}
	}
}

// TestJSON: a Config passes to the door and back as JSON, without secrets.
func TestJSON(t *testing.T) {
	src, err := os.ReadFile("full.hcl")
	if err != nil {
		t.Fatal(err)
	}
	cfg := parse(t, string(src))
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{string(text), fmt.Sprintf("%v %+v %#v %x %d", cfg, cfg, cfg, cfg.Admin.Token, cfg.Admin.Token)} {
		if strings.Contains(s, "hush-") || strings.Contains(s, fmt.Sprintf("%x", "hush-")) {
			t.Errorf("a secret shows in %s", s)
		}
	}
	var back Config
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(back)
	if err != nil || string(again) != string(text) {
		t.Errorf("JSON changes on its way: %v\n%s\n%s", err, text, again)
	}
	for _, want := range []string{`"drain_timeout":"10m"`, `"memory":"4GiB"`, `"token":"***"`, `"interval":"250ms"`, `"level":"INFO"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("JSON has no %s: %s", want, text)
		}
	}
}

func TestRedacted(t *testing.T) {
	cfg := parse(t, `
pool "a" {
  engine {
    args        = ["--api-key", "hush-arg", "--hf-token=hush-arg", "--max-num-batched-tokens", "2048", "--long-prefill-token-threshold=512", "--port", env("PORT"), "x${env("A_KEY")}"]
    environment = { HF_TOKEN = "hush-env", URL = "http://${env("A_KEY")}@h", LEVEL = "INFO" }
  }
}
pool "b" {
  driver = "docker"
  image = "x"
  command = ["--key", "hush-arg", "serve"]
  environment = { A = env("A_KEY") }
}`)
	text, err := json.Marshal(cfg.Redacted())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "hush") {
		t.Errorf("a secret shows in %s", text)
	}
	for _, want := range []string{`"LEVEL":"INFO"`, `"--port"`, `"serve"`, `"--hf-token=***"`, `"--max-num-batched-tokens","2048"`, `"--long-prefill-token-threshold=512"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("hides too much, no %s: %s", want, text)
		}
	}
	if cfg.Pools[1].Container.Environment["A"] != "hush-key-1" {
		t.Error("the configuration itself has changed")
	}
}
