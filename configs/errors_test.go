package configs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestErrors loads every file of testdata/bad and compares what is printed
// with the golden file beside it.
func TestErrors(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		_, err := Load(file, environment)
		if err == nil {
			t.Errorf("%s: no error", file)
			continue
		}
		golden := strings.TrimSuffix(file, ".hcl") + ".txt"
		if *update {
			if err := os.WriteFile(golden, []byte(err.Error()+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, readErr := os.ReadFile(golden)
		if readErr != nil || err.Error()+"\n" != string(want) {
			t.Errorf("%s: got\n%v\nwant\n%s", file, err, want)
		}
		if strings.Contains(err.Error(), "hush-") {
			t.Errorf("%s: a secret shows in\n%v", file, err)
		}
	}
}

// refuse checks that src is refused with all of want in what is said.
func refuse(t *testing.T, src string, want ...string) {
	t.Helper()
	_, err := Parse("test.hcl", []byte(src), environment)
	if err == nil {
		t.Errorf("no error for\n%.300s", src)
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("does not say %q:\n%.2000v", w, err)
		}
	}
}

// TestBounds: what could hurt the parser never reaches it.
func TestBounds(t *testing.T) {
	deep := func(open string, n int) string { return "pool \"a\" {}\nx = " + strings.Repeat(open, n) }
	refuse(t, deep("[", 100_000), "test.hcl:2:", "nested more than 32 deep")
	refuse(t, deep("{a=", 100_000), "nested more than 32 deep")
	refuse(t, deep("(", 100_000), "nested more than 32 deep")
	refuse(t, deep(`"${`, 100_000), "nested more than 32 deep")
	refuse(t, strings.Repeat("a {\n", 100_000), "nested more than 32 deep")
	refuse(t, deep("-", 100_000), "two minus signs")
	refuse(t, deep("!", 100_000), "no calculations")
	refuse(t, deep("a ? b : ", 10_000), "no calculations")
	refuse(t, strings.Repeat("# a comment\n", 100_000), "larger than 1MiB")
	refuse(t, "state_dir = [for i in [1, 2]: [for j in [1, 2]: i]]", "no calculations")
	refuse(t, "state_dir = \"%{ for i in [1] }a%{ endfor }\"", "no calculations")
	refuse(t, "pool \"a\" {}\n"+strings.Repeat("a = 1\n", 170_000), "given twice") // told a hundred times at most
	refuse(t, "a = 1\xff", "test.hcl:1:6", "byte 0xff is not UTF-8")
	refuse(t, "# ok\n# é \xe9\n", "test.hcl:2:5", "byte 0xe9 is not UTF-8")
	refuse(t, "\xff\xfea\x00", "UTF-16")
	refuse(t, "\x1b[31m = 1", "test.hcl:1:1")
}

// TestFilesThatAreNone: case 108 of what an operator may point at.
func TestFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	f := func(path string, want string) {
		t.Helper()
		_, err := Load(path, environment)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("%s: got %v; want it to say %q", path, err, want)
		}
	}
	f(filepath.Join(dir, "absent.hcl"), "no such file")
	f(dir, "is a directory")

	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	f(pipe, "not a regular file")

	empty := filepath.Join(dir, "empty.hcl")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f(empty, "has no pool")

	sparse := filepath.Join(dir, "sparse.hcl")
	if err := os.WriteFile(sparse, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(sparse, 1<<30); err != nil {
		t.Fatal(err)
	}
	f(sparse, "1073741824 bytes")

	if os.Geteuid() != 0 { // root reads everything
		closed := filepath.Join(dir, "closed.hcl")
		if err := os.WriteFile(closed, nil, 0); err != nil {
			t.Fatal(err)
		}
		f(closed, "permission denied")
	}
}

func TestValues(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		refuse(t, "pool \"a\" {}\n"+line, want)
	}
	f(`door { peers = ["elsewhere"] }`, `"elsewhere" is not the admin API of a door`)
	f(`door { slow_start = "-1s" }`, `"-1s" is negative`)
	f(`door { slow_start = "99999h" }`, "longer than ten years")
	f(`door { slow_start = "99999999999999h" }`, "is not a time")
	f(`door { slow_start = "soon" }`, `"soon" is not a time`)
	f(`door { slow_start = 30 }`, "slow_start takes a string, found a number")
	f(`door { memory = "lots" }`, `"lots" is not a size`)
	f(`door { memory = "16777216TiB" }`, "more than 64 bits")
	f(`door { memory = "1KiB" }`, "memory is 1KiB; it is 1MiB or more")
	f(`supervisor { parallel = 0 }`, "parallel is 0; it is a whole number from 1 to 1024")
	f(`supervisor { parallel = 1.5 }`, "parallel is 1.5; it is a whole number")
	f(`supervisor { parallel = 1e400 }`, "parallel is 1e+400; it is a whole number")
	f(`door { listen = null }`, "listen takes a string, found nothing")
	f(`door { listen = ":80000" }`, `listen is ":80000"`)
	f(`door { listen = localhost }`, `a string stands in quotes: "localhost"`)
	f(`door { listen = upper("a") }`, "there is no function upper")
	f(`door { listen = env("NOT_THERE") }`, "the environment has no NOT_THERE")
	f(`door { listen = file("/absent") }`, "cannot read /absent")
	f(`door { listen = file("/dev/zero") }`, "not a regular file")
	f(`door { listen = env(env("HOME")) }`, "env takes one string that stands here as it is")
	f("door {\n  listen = \":1\"\n  listen = \":2\"\n}", "given twice")
	f(`log { level = "warns" }`, `did you mean "warn"?`)
	f(`door { tls = {} }`, "tls is a block, not an attribute")
	f("door {\n  policy {}\n}", "policy is an attribute, not a block")
	f(`door "front" {}`, "door takes no label")
	f(`route {}`, `write route "name" { … }`)
	f(`admin { listen = "0.0.0.0:8001" }`, "could stop every worker")
	f(`admin { listen = "unix://run/x" }`, "absolute path")
	f(`admin { listen = "localhost:8000" }`, "both listen on port 8000")
	f(`otlp { endpoint = "localhost:4318" }`, "endpoint is")
	f(`state_dir = "state"`, "it is an absolute path")
}

func TestPools(t *testing.T) {
	f := func(inside string, want ...string) {
		t.Helper()
		refuse(t, "pool \"a\" {\n"+inside+"\n}", want...)
	}
	f(`driver = "podman"`, "driver is \"podman\"")
	f(`driver = "plugin:x"`, `there is no plugin "x"`)
	f(`image = "x"`, "image is for the docker and swarm drivers")
	f(`environment = { A = "b" }`, "its environment stands in the engine block")
	f(`driver = "docker"`, "the docker driver takes an image")
	f("driver = \"docker\"\nimage = \"x\"\ncommand = [\"x\"]\nengine {}", "give one of them")
	f("command = [\"x\"]\nengine {}", "give one of them")
	f("command = []", "command is empty")
	f("driver = \"static\"", "has no worker")
	f("driver = \"static\"\nworker \"a\" {}", "has no url")
	f("driver = \"static\"\nworker \"a\" { url = \"http://u:p@h\" }", "url holds a user")
	f("workers = 2\nworker \"a\" {}", "give the count or the blocks")
	f("workers = 0", "workers is 0")
	f("workers = 5000", "from 1 to 4096")
	f("gpus_per_worker = 2", "our own engine takes one")
	for _, gpu := range []string{"2", "18:00.0", "000:18:00.0", "00010000:18:00.0", "123456789:18:00.0", "0000:18:20.0", "0000:18:00.8"} {
		f(fmt.Sprintf("worker \"a\" { gpus = [%q] }", gpu), fmt.Sprintf("%q is neither a PCI address", gpu))
	}
	f("devices = \"cpu\"\nworker \"a\" { gpus = [\"0000:18:00.0\"] }", "give one of them")
	f(`worker "a/b" {}`, `worker "a/b": a name is`)
	f("worker \"a\" { port = 8000 }", "port 8000 is the door's and worker a/a's")
	f("worker \"a\" { takeover = \"x\" }", "takeover is for the docker driver")
	f("canary {}", "judged against the others")

	rotation := func(inside string, want ...string) {
		t.Helper()
		f("workers = 2\nrotation {\n"+inside+"\n}", want...)
	}
	for _, expr := range []string{"60 * * * *", "*/0 * * * *", "0 0 * * * * *", "0 3 * *", "", " "} {
		if expr != "" {
			rotation(fmt.Sprintf("schedule = %q", expr), "schedule:", "five-field cron expression")
		}
	}
	rotation(`schedule = "0 0 31 2 *"`, "a day that never comes")
	rotation(`schedule = "@every 1ns"`, "would drift")
	rotation(`schedule = "TZ=Nope 0 3 * * *"`, "it stands in timezone")
	rotation(`timezone = "Berlin"`, "IANA name")
	rotation(`blackout = ["weekdays"]`, "not a time of the week")
	rotation("schedule = \"0 9 * * 1-5\"\nblackout = [\"Mon-Fri 08:00-20:00\"]", "no rotation would ever begin")
	rotation("schedule = \"0 * * * *\"\njitter = \"1h\"", "not shorter than the 1h between two rotations")
	rotation(`min_ready = 2`, "none could ever take its turn")
	rotation(`ready_timeout = "0s"`, "ready_timeout is 0s; it is 1s or more")
}

func TestNamesAndPlaces(t *testing.T) {
	refuse(t, "pool \"a\" {}\npool \"a\" {}", `pool "a" is there twice; the first is on line 1`)
	refuse(t, "pool \"a\" {\n  worker \"x\" { gpus = [\"0000:18:00.0\"] }\n}\npool \"b\" {\n  worker \"x\" { gpus = [\"0000:18:00.0\"] }\n}",
		"test.hcl:5:", "gpu 0000:18:00.0 is worker a/x's and worker b/x's")
	refuse(t, "pool \"a\" {\n  worker \"x\" { port = 9001 }\n  worker \"y\" { port = 9001 }\n}", "port 9001 is worker a/x's and worker a/y's")
	refuse(t, "pool \"a\" {}\nroute \"r\" {}", `route "r" has no target`)
	refuse(t, "pool \"a\" {}\nroute \"r\" {\n  aliases = [\"q\"]\n  target \"m\" {}\n}\nroute \"q\" {\n  target \"m\" {}\n}",
		`"q" is a name of route "r" and of route "q"`)
	refuse(t, "pool \"a\" {}\nroute \"r\" {\n  target \"q\" {}\n}\nroute \"q\" {\n  target \"r\" {}\n}", "leads back to itself")
	refuse(t, "pool \"a\" {\n  engine { served_model_name = [\"model\"] }\n}\nroute \"r\" {\n  target \"modle\" {}\n}",
		`no pool serves "modle"; did you mean "model"?`)
	refuse(t, "pool \"a\" {}\nplugin \"p\" {\n  kind = \"policy\"\n  path = \"/p\"\n}", "sha256 is the 64 hexadecimal digits")
	sum := strings.Repeat("a", 64)
	refuse(t, fmt.Sprintf("pool \"a\" {}\ndoor {\n  key \"x\" { sha256 = [%q] }\n  key \"y\" { sha256 = [%q] }\n}", sum, sum), "one client would be two")
	refuse(t, "pool \"a\" {}\ndoor {\n  limits {\n    body = \"8GiB\"\n  }\n}", "one such request could never be taken")
	refuse(t, "pool \"a\" {}\ndoor {\n  queue {\n    max_wait = \"11m\"\n  }\n}", "longer than limits first_byte")
}

// FuzzParse: whatever the bytes, Parse returns a Config or says what is
// wrong; it never panics, and what it accepts it formats and accepts again.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("*.hcl")
	bad, _ := filepath.Glob("testdata/bad/*.hcl")
	for _, file := range append(files, bad...) {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		cfg, err := Parse("fuzz.hcl", src, environment)
		if (cfg == nil) == (err == nil) {
			t.Fatalf("config %v and error %v", cfg, err)
		}
		if err != nil {
			if strings.Contains(err.Error(), "hush-key-1") || strings.Contains(err.Error(), "hush-token-1") {
				t.Fatalf("a secret shows in %v", err)
			}
			return
		}
		formatted, err := Format("fuzz.hcl", src)
		if err != nil {
			t.Fatalf("valid and cannot be formatted: %v", err)
		}
		if _, err := Parse("fuzz.hcl", formatted, environment); err != nil {
			t.Fatalf("formatting broke it: %v\n%s", err, formatted)
		}
	})
}
